"""Model folders on disk: found, read safely, written whole, converted, described."""
