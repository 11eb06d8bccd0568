"""Transforms of sentence vectors: whitening and flow."""
