"""Typed entities in pre-training (WKLM)."""
