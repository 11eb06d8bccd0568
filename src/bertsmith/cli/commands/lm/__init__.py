"""Commands of language models of words."""
