"""Commands of several runs and a table."""
