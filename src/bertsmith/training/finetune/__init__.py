"""Fine-tuning: from labeled rows to a model folder that states its own quality."""
