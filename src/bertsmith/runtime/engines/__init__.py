"""What runs a batch through an encoder."""
