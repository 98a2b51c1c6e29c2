"""The trade-off between the two errors of a test that tells neighbouring inputs apart, and what a claim allows.

A test that takes a release for one of the first input has a false positive rate a and a false negative rate b. For an
(epsilon, delta)-private mechanism b is at least max(0, 1 - delta - e**epsilon a, e**-epsilon (1 - delta - a))
(Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015, theorem 2.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leakboard.board.figures import COLOURS, layout

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from leakboard.privacy.auditing.curve import TradeOff


def least_false_negatives(epsilon: float, delta: float, false_positives: np.ndarray) -> np.ndarray:
    """Return the least false negative rate that a claim allows for each false positive rate, float64 (n,)."""
    above, below = 1 - delta - np.exp(epsilon) * false_positives, np.exp(-epsilon) * (1 - delta - false_positives)
    return np.maximum(0.0, np.maximum(above, below))


def trade_off(
    epsilon: float, delta: float, false_positives: float, false_negatives: float, bound: TradeOff | None = None
) -> Figure:
    """Return the curve of what a claim allows, and the rates of a test.

    A test whose true rates lie below the curve refutes the claim. The shares that an audit counted estimate these
    rates, and may lie below by chance; only the audit's bound says whether the claim is refuted.

    Args:
        epsilon: what is claimed.
        delta: what is claimed.
        false_positives: share that was counted.
        false_negatives: share that was counted.
        bound: a curve that an audit proves the mechanism's not to lie above; None for none.
    """
    import plotly.graph_objects as go

    rates = np.concatenate([[0.0], np.logspace(-5, 0, 200)])
    figure = go.Figure(layout=layout("false positive rate", "false negative rate"))
    figure.add_scatter(
        x=rates,
        y=least_false_negatives(epsilon, delta, rates),
        mode="lines",
        line={"color": COLOURS[0]},
        name=f"least that the claimed epsilon {epsilon:.3g} allows",
    )
    figure.add_scatter(
        x=[false_positives],
        y=[false_negatives],
        mode="markers",
        marker={"color": COLOURS[4], "size": 10},
        name="shares that the audit counted; by chance they may lie below the line",
    )
    if bound is not None:
        figure.add_scatter(
            x=bound.false_positives,
            y=bound.false_negatives,
            mode="lines",
            line={"color": COLOURS[4], "dash": "dot"},
            name=f"the release's own lies here or below ({100 * bound.confidence:.0f} % confidence)",
        )
    return figure
