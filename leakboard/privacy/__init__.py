"""Formal privacy: mechanisms with their theorems, controls that break them, and audits of what is claimed."""
