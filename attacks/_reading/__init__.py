"""Help attacks that read texts from vectors: the attacker's vocabulary and a language model."""
