"""The attackers behind `attribute_inference` and `entity_presence`: an ensemble, an MLP, a logistic regression."""
