"""Optimizers and their settings."""
