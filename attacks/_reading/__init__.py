"""What attacks that read texts from vectors share."""
