"""Text as words: what parts them, their characters, a tokenizer of whole words."""
