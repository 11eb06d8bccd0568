"""Studies: many runs that answer one question, each with its table and page."""
