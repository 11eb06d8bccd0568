"""Relative positions and segments, two streams and a memory (XLNet)."""
