"""Training on labeled rows: all tasks of `bertsmith.tasks`, seeds and folds."""
