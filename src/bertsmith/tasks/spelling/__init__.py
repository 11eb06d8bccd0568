"""Spelling correction as a task: characters, Soft-Masked BERT."""
