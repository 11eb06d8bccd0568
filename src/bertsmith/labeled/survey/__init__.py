"""Checks of a data set: duplicates, leaks, conflicts, label statistics."""
