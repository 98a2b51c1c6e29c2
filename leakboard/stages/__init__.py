"""The way of a cell: a fitted victim (`fitting`), what it publishes (`publications`), guesses and scores (`cell`)."""
