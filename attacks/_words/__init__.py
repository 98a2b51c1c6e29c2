"""Compare word vectors by more than their direction."""
