"""Mechanisms that release vectors: correct ones with their theorems, controls, and what comes before the noise."""
