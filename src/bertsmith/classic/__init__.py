"""Language models and word vectors from before BERT: word streams, n-grams, neural LMs, ELMo."""
