"""What is odd about a data set, before a model is trained on it."""
