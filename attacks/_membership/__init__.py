"""What attacks on training data share."""
