"""Sentence vectors: training, correction, evaluation and search."""
