"""Train, dev and test rows; folds; subsets."""
