"""Release vectors under noise: mechanisms with their theorems, broken controls, and normalisation of the input."""
