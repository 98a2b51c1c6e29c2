"""Train word vectors privately: shared by ``dp_word2vec`` and its broken control ``dp_word2vec_as_published``."""
