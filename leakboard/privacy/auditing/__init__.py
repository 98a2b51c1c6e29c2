"""Prove lower bounds on epsilon by attacking a running mechanism or a training run.

An audit of single rows has four steps:

1. ``trials`` releases rows; a fair coin decides for each row which of two inputs is released.
2. ``scores`` maps a release to numbers whose size tells the inputs apart, ``points`` to numbers with telling values,
   and ``symbols`` does so for words, texts and sets.
3. ``choosing`` picks the pair, the score and, by ``thresholds``, the event that promise the largest bound.
4. ``bound`` turns counts among fresh releases into a lower bound; ``curve`` bounds the trade-off.

``guesses`` bounds epsilon by right guesses of coins, with the theorems of ``one_run`` and ``one_run_curve``. Audits of
training, of whole ``calls`` and of the ``first_rows`` use these theorems. ``audit`` does all of it for the Python API;
the attack `dp_audit` calls ``choosing`` itself. ``events`` has the events and the pairs of inputs, ``distances`` the
pairs for claims per unit of a distance. ``point_estimate`` has a sanity check without confidence.
"""
