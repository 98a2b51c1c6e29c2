"""The way of a cell: `fitting`, `publications`, what an attack sees (`scene`, `training_data`), scores (`cell`)."""
