"""Prove lower bounds on epsilon by attacking a running mechanism or a training run.

An audit of single rows has four steps. The Python API runs them by ``audit``; the attack ``dp_audit`` runs ``choosing``
itself.

1. ``trials`` releases rows; a fair coin decides for each row whether it is the first or the second input.
2. ``scores`` maps a release to one number that tells the inputs apart.
3. ``choosing`` picks the score and the threshold (an ``events.Event``) that promise the largest bound.
4. ``bound`` turns the counts of that event among fresh releases into a lower bound; ``curve`` bounds the trade-off.

Other audits guess coins. ``guesses`` counts right guesses; ``one_run`` and ``one_run_curve`` have the theorems.
``calls`` uses them for rows that reveal other rows, of the same call or of another call. Audits of training use them
for planted canaries.

``sanity`` has the point estimate of an earlier paper, without confidence.
"""
