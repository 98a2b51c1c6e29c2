"""Read suites, find plugins, and give every cell its identity."""
