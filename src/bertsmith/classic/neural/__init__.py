"""Neural language models of words: Bengio's network, LSTM and GRU, in the one training loop."""
