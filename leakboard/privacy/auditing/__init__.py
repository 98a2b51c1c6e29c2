"""Prove lower bounds on epsilon by attacking a running mechanism or a training run.

A call runs a mechanism's `release` on several inputs; each input is one row. An audit of single rows has four steps.
The Python API runs them by ``audit``; the attack ``dp_audit`` uses ``choosing`` directly.

1. ``trials`` releases rows; a fair coin decides for each row whether it is the first or the second input.
2. ``scores`` maps a release to one number that tells the inputs apart.
3. ``choosing`` picks the score and the threshold (an ``events.Event``) that promise the largest bound.
4. ``bound`` turns the counts of that event among fresh releases into a lower bound; ``curve`` bounds the trade-off.

Other audits guess coins. ``guesses`` counts right guesses; ``one_run`` and ``one_run_curve`` have the theorems.
``calls`` uses these theorems to test whether a row reveals another row, of the same call or of another call. Audits of
training use these theorems for texts that were planted in the training data (canaries).

``point_estimate`` has the sanity check of an earlier paper, which states no confidence.
"""
