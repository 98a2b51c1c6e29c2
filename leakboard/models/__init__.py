"""What victims and attackers train: one training loop, encoders, skip-gram, nearest neighbours."""
