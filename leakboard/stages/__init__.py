"""The way of a cell: `fitting` a victim, its `publications`, an attack's `scene` and `training_data`, scores in `cell`."""
