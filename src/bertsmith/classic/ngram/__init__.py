"""n-gram language models: interpolated modified Kneser-Ney, its files and ARPA."""
