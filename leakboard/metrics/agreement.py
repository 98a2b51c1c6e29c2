"""Score how guessed texts agree with the true ones, each score next to its floor.

| metric | what is compared |
|---|---|
| ``set_f1`` | different words, pooled over texts |
| ``multiset_f1`` | words with their counts, pooled over texts |
| ``rouge_l`` | the longest common subsequence of words (Lin 2004): F1, averaged over texts |
| ``bleu`` | sequences of one to four words, over all texts (Papineni et al. 2002), from 0 to 1 |

The floor of a score is the score of the same guesses in another order, so that each text meets the guess about another
text. It shows what guesses gain by writing like the corpus. Packages compute ROUGE-L and BLEU: rouge-score and
sacrebleu. Their tokens are the words of `leakboard.data.tokens`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakboard.data.tokens import words
from leakboard.interfaces import Floats, Integers
from leakboard.metrics.measures import Metric, Ratio
from leakboard.metrics.sensitive_words import WordClass, sensitive_metrics
from leakboard.metrics.text_scores import bags, overlap
from leakboard.models.search import normalised

FLOOR = "_floor"
"""Ending of the names of floors."""
ORDERED = ("rouge_l", "bleu")
"""Metrics of guesses that have an order."""


def agreement_metrics(
    guessed: Sequence[str],
    truth: Sequence[str],
    ordered: bool,
    units: Integers | None,
    classes: Sequence[WordClass],
    rng: np.random.Generator,
) -> list[Metric]:
    """Return the agreement of guesses with the true texts, and their floors.

    Args:
        guessed: one text for each true text, in order.
        truth: the true texts.
        ordered: whether guesses have an order; otherwise ROUGE-L and BLEU have no value.
        units: int64 (n,), the author of each text, or None.
        classes: kinds of words that matter.
        rng: draws the order of the floors.
    """
    metrics = [*_agreement(guessed, truth, ordered, units), *sensitive_metrics(guessed, truth, units, classes)]
    if len(truth) > 1:
        others = [guessed[row] for row in another_order(len(truth), rng)]
        floors = [*_agreement(others, truth, ordered, units), *sensitive_metrics(others, truth, units, classes)]
        metrics += [_floor(metric) for metric in floors]
    return metrics


def cosine_metrics(guessed: Floats, true: Floats, rng: np.random.Generator) -> list[Metric]:
    """Return the mean cosine of the vectors of guesses and texts, float32 (n, d) each, and its floor, if n > 1."""
    guessed, true = normalised(guessed), normalised(true)
    orders = {"": np.arange(len(true))} | ({FLOOR: another_order(len(true), rng)} if len(true) > 1 else {})
    means = {name: float((guessed[rows] * true).sum(1).clip(-1, 1).mean()) for name, rows in orders.items()}
    return [Metric(f"reencoded_cosine{name}", mean, n=len(true)) for name, mean in means.items()]


def another_order(n: int, rng: np.random.Generator) -> Integers:
    """Draw an order of n rows, int64 (n,), in which no row keeps its place, unless there is only one."""
    cycle = rng.permutation(n)
    order = np.empty_like(cycle)
    order[cycle] = np.roll(cycle, 1)
    return order


def _floor(metric: Metric) -> Metric:
    return Metric(f"{metric.name}{FLOOR}", metric.value, metric.variable, n=metric.n, status=metric.status)


def _agreement(guessed: Sequence[str], truth: Sequence[str], ordered: bool, units: Integers | None) -> list[Metric]:
    by_set, by_multiset = (overlap(bags(guessed, c), bags(truth, c), units)[2] for c in (False, True))
    metrics = [by_set.metric("set_f1"), by_multiset.metric("multiset_f1")]
    if not ordered:
        status = "the guesses are sets of words, without an order"
        return [*metrics, *(Metric(name, None, n=len(truth), status=status) for name in ORDERED)]
    written, true = ([" ".join(words(text)) for text in texts] for texts in (guessed, truth))
    return [*metrics, _rouge(written, true, units), _bleu(written, true)]


class _Words:
    """Split a text that `leakboard.data.tokens` has split before, as rouge-score asks for it."""

    def tokenize(self, text: str) -> list[str]:
        """Return the words."""
        return text.split()


def _rouge(guessed: Sequence[str], truth: Sequence[str], units: Integers | None) -> Metric:
    from rouge_score.rouge_scorer import RougeScorer  # takes seconds to import

    scorer = RougeScorer(["rougeL"], tokenizer=_Words())
    f1 = [scorer.score(text, guess)["rougeL"].fmeasure for guess, text in zip(guessed, truth, strict=True)]
    return Ratio(np.array(f1, np.float64), np.ones(len(f1)), units).metric("rouge_l")


def _bleu(guessed: Sequence[str], truth: Sequence[str]) -> Metric:
    from sacrebleu import corpus_bleu  # takes half a second to import

    return Metric("bleu", corpus_bleu(guessed, [truth], tokenize="none").score / 100, n=len(truth))
