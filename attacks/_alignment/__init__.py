"""Map stolen vectors, whose protection is secret, into the space of the attacker's own encoder."""
