"""Release vectors with noise: mechanisms and their theorems, broken controls, and normalisation of the input.

`leakboard.mechanism` defines what a mechanism must do.
"""
