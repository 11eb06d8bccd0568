"""Spelling correction: one character for one, by Soft-Masked BERT."""
