"""What a suite asks for: its YAML, the registry of plugins, their options, and the plan of cells with identities."""
