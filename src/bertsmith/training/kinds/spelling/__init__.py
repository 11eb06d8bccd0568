"""Training of spelling correction: Soft-Masked BERT."""
