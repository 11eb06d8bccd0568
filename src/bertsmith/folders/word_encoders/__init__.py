"""Folders of encoders that read whole words: ELMo, published or trained here, and word vectors."""
