"""Compute cells.

1. ``runner`` looks up results with ``results``, and gives the tasks of ``schedule`` to an engine.
2. A task calls a function of ``task_functions``: load, fit, publish, or attack.
3. ``stages`` takes an artefact from the store or makes it; ``publications`` has the calls of the victim.
4. ``cell`` lets ``attacking`` run the attack, and ``records`` writes the result.
"""
