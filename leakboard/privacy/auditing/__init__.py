"""Prove lower bounds on epsilon by attacking a running mechanism or a training run.

An audit of single rows has four steps:

1. ``trials`` releases rows; a fair coin decides for each row which of two inputs is released.
2. ``scores`` maps a release to one number that tells the inputs apart.
3. ``choosing`` picks the score and the threshold that promise the largest bound.
4. ``bound`` turns counts among fresh releases into a lower bound; ``curve`` bounds the trade-off.

``guesses`` bounds epsilon by right guesses of coins, with the theorems of ``one_run`` and ``one_run_curve``. Audits of
training and of whole ``calls`` use these theorems. ``audit`` does all of it for the Python API; the attack `dp_audit`
calls ``choosing`` itself. ``events`` has the events and the pairs of inputs. ``point_estimate`` has a sanity check
without confidence.
"""
