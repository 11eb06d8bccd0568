"""What is joined to a passage: branches of a graph (K-BERT), tags (SemBERT)."""
