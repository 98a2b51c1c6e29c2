"""Read tables, lines and vectors from users' files, archives and vector databases."""
