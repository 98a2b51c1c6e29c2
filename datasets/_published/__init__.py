"""Find and read published files that several datasets share a format or a layout for."""
