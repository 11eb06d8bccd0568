"""`bertsmith sentences`: one file per command of the group."""
