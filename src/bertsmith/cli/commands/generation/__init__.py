"""Commands of models that write."""
