"""Build corpora and their splits, fetch public files, and split texts into words."""
