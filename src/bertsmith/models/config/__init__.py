"""config.json and specs: read strictly, written back."""
