"""Encoders that read whole words: ELMo, and tables of word vectors."""
