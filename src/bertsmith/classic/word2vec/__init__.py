"""word2vec: skip-gram and CBoW with negative sampling, NCE or hierarchical softmax."""
