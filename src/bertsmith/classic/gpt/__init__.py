"""The causal language model on BERT's blocks as a language model of lines, like all others."""
