"""The road to BERT: models of words that came before it."""
