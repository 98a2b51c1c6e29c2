"""Share features and shadow models between attacks on training data."""
