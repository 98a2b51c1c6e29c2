"""Training against an adversary, and choosing by its success."""
