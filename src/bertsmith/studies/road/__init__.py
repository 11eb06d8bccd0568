"""The road to BERT: models from counting words to BERT on the same documents, in one table."""
