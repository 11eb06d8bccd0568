"""Fine-tuning tasks: features, losses, decoding, models."""
