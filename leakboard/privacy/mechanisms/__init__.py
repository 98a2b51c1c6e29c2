"""Release vectors with noise: mechanisms and their theorems, broken controls, and normalisation of the input."""
