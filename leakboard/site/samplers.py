"""Draw figure 2 of Habernal (2022): a correct sampler of Laplace noise next to the sampler of DPText."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from leakboard.board.figures import COLOURS, layout
from leakboard.privacy.mechanisms.broken import DpTextSampler
from leakboard.privacy.mechanisms.textbook import laplace_noise
from leakboard.site.charts import Figure, plain

DRAWS = 100_000
EDGES = np.linspace(-8, 8, 81)

Floats = NDArray[np.float64]


def inverse(u: Floats) -> Floats:
    """Return -sgn(u) ln(1 - 2|u|): Laplace noise for u in (-1/2, 1/2), and NaN beyond (REPARAM, section 3)."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", RuntimeWarning
        )  # the logarithm of a negative number is NaN, which the figure shows
        return -np.sign(u) * np.log(1 - 2 * np.abs(u))


def draws(seed: int = 0) -> Mapping[str, Floats]:
    """Return 100,000 draws of scale 1 of each sampler, by its description."""
    rng = np.random.default_rng(seed)
    zeros, uniform = np.zeros((DRAWS, 1)), rng.random(DRAWS)
    return {
        "Laplace noise, as LeakBoard's mechanisms draw it": laplace_noise(zeros, 1.0, rng)[:, 0],
        "the uniform numbers that it may be made of, from 0 to 1": uniform,
        "the inverse distribution function at these minus 1/2: Laplace noise": inverse(uniform - 0.5),
        "DPText: the same function at the numbers themselves, NaN left out": inverse(uniform),
        "DPText with 0 for NaN, as it is audited": DpTextSampler(epsilon=1.0).release(zeros, rng)[:, 0],
    }


def histograms() -> list[tuple[str, Figure]]:
    """Return a histogram for each sampler, with its description, mean, variance and share of NaN."""
    import plotly.graph_objects as go

    charts = []
    for i, (name, values) in enumerate(draws().items()):
        known = values[np.isfinite(values)]
        counts, _ = np.histogram(known, EDGES)
        figure = go.Figure(layout=layout("value", f"draws of {DRAWS:,}"))
        figure.add_bar(
            x=((EDGES[1:] + EDGES[:-1]) / 2).round(6).tolist(),
            y=counts.tolist(),
            marker={"color": COLOURS[i]},
            width=0.2,
        )
        lost = 1 - len(known) / len(values)
        figures = f"mean {round(known.mean(), 2) + 0.0:.2f}, variance {known.var():.2f}" + (
            f", {100 * lost:.0f} % NaN" if lost else ""
        )
        charts.append((f"{name[0].upper()}{name[1:]}: {figures}.", plain(figure)))
    return charts
