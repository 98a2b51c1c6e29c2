"""Compute scores and their intervals from arrays. LeakBoard scores the guesses; a plugin never scores itself."""
