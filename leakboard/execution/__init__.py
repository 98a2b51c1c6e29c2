"""Run tasks: engines, reservations, and what a stage may use of the machine. Knows no plugin and no metric."""
