"""Prove lower bounds on epsilon by attacking a running mechanism or a training run.

From a mechanism to a bound on single rows (`leakboard.privacy.auditing.audit`):

1. ``trials`` releases rows; a fair coin decides for each row whether it is the first or the second input.
2. ``scores`` maps a release to one number that tells the inputs apart.
3. ``choosing`` picks the score and the threshold (an ``events.Event``) that promise the largest bound.
4. ``bound`` turns the counts of that event among fresh releases into a lower bound; ``curve`` bounds the trade-off.

From guessed coins to a bound: ``guesses`` counts right guesses, ``one_run`` and ``one_run_curve`` hold the theorems.
``calls`` uses them for rows of one call that depend on each other; audits of training use them for planted canaries.
``sanity`` is the point estimate of an earlier paper, without confidence.
"""
