"""Run tasks: engines, reservations, threads and devices. This package knows no plugin and no metric."""
