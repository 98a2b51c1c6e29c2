"""Release vectors with noise (`leakboard.mechanism`): mechanisms, broken controls, and normalisation."""
