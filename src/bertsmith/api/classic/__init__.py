"""Language models of words, and the road from them to BERT."""
