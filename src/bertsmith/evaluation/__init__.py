"""Evaluation of predictions on labeled rows: proof, comparison of models, text lengths."""
