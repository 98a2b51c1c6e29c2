"""Compute upper bounds on the epsilon of releases and of private training."""
