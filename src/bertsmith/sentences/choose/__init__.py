"""The choice of layer, pooling, correction and dimension on a user's own pairs."""
