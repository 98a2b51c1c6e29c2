"""How tasks run: engines, reservations, and what a stage may use of the machine. It knows no plugin and no metric."""
