"""Compute cells: the runner, the stages load, fit, publish and attack, and the records of their results."""
