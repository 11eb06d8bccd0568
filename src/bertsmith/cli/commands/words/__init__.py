"""Commands of word vectors."""
