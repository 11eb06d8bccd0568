"""Noises: masking, deletion, infilling, permutation and rotation of texts that a model restores."""
