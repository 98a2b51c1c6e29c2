"""Readers of users' files and of vector databases."""
