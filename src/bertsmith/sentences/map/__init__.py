"""Maps of texts and words: occurrences of words, projections to two dimensions."""
