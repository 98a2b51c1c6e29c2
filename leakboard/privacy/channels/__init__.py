"""Sanitise words: each mechanism is a channel, a matrix of the probabilities P(y | x) over a public vocabulary."""
