"""Choice of layer, pooling, transform and dimension by pairs of the user."""
