"""Check the promises that every plugin keeps, one function for each promise; `suite` runs the functions."""
