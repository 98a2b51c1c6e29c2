"""Corpora and their splits, tables, downloads, archives, and the words of a text."""
