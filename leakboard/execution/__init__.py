"""Run tasks: engines, reservations, threads and devices."""
