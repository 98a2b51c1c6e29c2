"""Numbers from arrays, each with its interval. LeakBoard scores the guesses; a plugin never scores itself."""
