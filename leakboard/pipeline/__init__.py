"""Compute a cell: the runner, its workers, and the stages load, fit, publish and attack with their records."""
