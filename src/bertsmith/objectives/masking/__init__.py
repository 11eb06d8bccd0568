"""Masking schemes: what is hidden together, and what takes its place."""
