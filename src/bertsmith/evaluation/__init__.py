"""What labeled rows say of a model's predictions: proof, comparison, lengths."""
