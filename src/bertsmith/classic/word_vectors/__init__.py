"""Static word vectors: a table with its searches, and published tests of words."""
