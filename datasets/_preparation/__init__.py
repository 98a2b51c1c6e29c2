"""Prepare texts that come without secrets, labels or splits: persons, topics, and random samples."""
