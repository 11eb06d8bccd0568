"""Commands of indexes and search."""
