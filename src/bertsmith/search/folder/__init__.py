"""An index in a folder: segments of rows, a manifest with their hashes, a graph."""
