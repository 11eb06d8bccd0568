"""A corpus on disk: reading texts, splitting them into pieces, writing and viewing the shards."""
