"""An index of texts and their vectors: building, searching, checking."""
