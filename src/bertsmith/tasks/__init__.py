"""What fine-tuning asks of a text, and how well it was answered."""
