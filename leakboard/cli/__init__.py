"""Run commands, print their results and progress, and write new plugins from templates."""
