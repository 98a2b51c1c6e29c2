"""The command line: commands, what they print, progress, and ``new`` with its templates."""
