"""Run tasks: engines, reservations, threads and devices.

1. ``engines.drive`` takes tasks from the queue in ``tasks`` and starts them in batches.
2. ``local``, ``ray`` and ``slurm`` run a batch in processes of their own; ``nodes`` is shared by the last two.
3. ``engines.run_task`` calls a task while it holds its ``reservations``.
4. ``resources`` and ``devices`` set threads and device, and measure the cost.
"""
