"""Run commands: what they print, their progress, and ``new`` with its templates."""
