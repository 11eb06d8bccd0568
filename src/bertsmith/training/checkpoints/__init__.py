"""Checkpoints: written whole, verified, resumed bit for bit."""
