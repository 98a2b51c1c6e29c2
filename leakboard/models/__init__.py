"""Train the models of victims and attackers: one training loop, encoders, skip-gram, nearest neighbours."""
