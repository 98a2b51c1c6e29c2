"""The way of a cell: corpus and fitted victim to published vectors (`victim`), to guesses and their scores (`cell`)."""
