"""Bytes on disk, safe and whole; knows nothing of models."""
