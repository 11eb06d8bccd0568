"""Files of word vectors: word2vec's text and binary forms and GloVe's text, in and out."""
