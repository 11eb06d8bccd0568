"""Search: indexes of texts and vectors, words, hybrid fusion, question banks, similar pairs."""
