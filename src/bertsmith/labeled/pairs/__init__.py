"""Rows of two texts or more: what they mean, and their splits."""
