"""Private training of word vectors, shared by DP-SGD victims."""
