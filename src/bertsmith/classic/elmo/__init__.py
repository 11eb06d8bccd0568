"""ELMo (Peters et al. 2018, arXiv:1802.05365): words from characters, LSTMs in both directions."""
