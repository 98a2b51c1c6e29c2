"""Score attacks that read a text from its vector, by the share of right words.

Words are those of `leakboard.data.tokens`: lower-cased and without punctuation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from leakboard.data.tokens import words
from leakboard.interfaces import Corpus, Integers
from leakboard.metrics.measures import Metric, Ratio, advantage, authors, remaining_privacy
from leakboard.metrics.new_texts import on_new_texts, without_copy
from leakboard.metrics.word_scores import RecoveredSentence

Bag = Counter[str]
"""How often each word is in a text; if guesses are sets of words, at most once."""


def text_metrics(guessed_texts: Sequence[str], ordered: bool, corpus: Corpus) -> list[Metric]:
    """Return token precision, recall and F1; for ordered guesses also character accuracy and exact matches.

    Tokens are pooled over texts (micro). With S the number of words that guess and text share:

    - precision = S / words of the guesses;
    - recall = S / words of the texts;
    - F1 = 2 S / (words of the guesses + words of the texts).

    A word that the guess has m times and the text n times is shared min(m, n) times. If guesses are sets, each word of
    a text counts once. Character accuracy is the number of characters at the right position, divided by the length of
    the longer one of guess and text.

    Args:
        guessed_texts: one text for each test text, in order.
        ordered: whether guesses have an order; otherwise each is a set of words.
        corpus: has train, for the best constant guess, and test.
    """
    truth, units = corpus.texts("test"), authors(corpus, "test")
    true, guessed = (bags(texts, ordered) for texts in (truth, guessed_texts))
    constant = best_constant_bag(bags(corpus.texts("train"), ordered))
    precision, recall, f1 = overlap(guessed, true, units)
    by_constant = overlap([constant] * len(true), true, units)[2]
    metrics = [
        f1.metric("attack_score"),
        remaining_privacy(f1, by_constant),
        *advantage(f1, by_constant),
        Metric("privacy_best_constant", 1 - by_constant.value, n=len(true)),
        *on_new_texts(f1, by_constant, without_copy(corpus)),
        precision.metric("token_precision"),
        recall.metric("token_recall"),
        f1.metric("token_f1"),
    ]
    if ordered:
        plain = ([" ".join(words(text)) for text in texts] for texts in (guessed_texts, truth))
        written = list(zip(*plain, strict=True))
        right = np.array([sum(a == b for a, b in zip(*pair, strict=False)) for pair in written], np.float64)
        longest = np.array([max(map(len, pair)) for pair in written], np.float64)
        same = np.array([guess == text for guess, text in written], np.float64)
        metrics.append(Ratio(right, longest, units).metric("character_accuracy"))
        metrics.append(Ratio(same, np.ones(len(same)), units).metric("exact_matches"))
    return metrics


def overlap(guessed: Sequence[Bag], true: Sequence[Bag], units: Integers | None = None) -> tuple[Ratio, Ratio, Ratio]:
    """Return token precision, recall and F1 of bags of words, pooled over texts."""
    shared = np.array([(guess & text).total() for guess, text in zip(guessed, true, strict=True)], np.float64)
    guessed_tokens, true_tokens = (np.array([bag.total() for bag in bags], np.float64) for bags in (guessed, true))
    return (
        Ratio(shared, guessed_tokens, units),
        Ratio(shared, true_tokens, units),
        Ratio(2 * shared, guessed_tokens + true_tokens, units, is_dice=True),
    )


def best_constant_bag(train: Sequence[Bag]) -> Bag:
    """Return the bag of words with the largest token F1 on train, if this bag is the guess for every text.

    The n-th copy of a word is shared with every text that has the word at least n times. Among bags of one size, the
    bag of the most widely shared copies is best, so one bag of each size is tried. Sort the copies by the number of
    texts that share them. If the first k copies share S_k words with N texts of T words, F1 = 2 S_k / (k N + T).
    """
    holding = Counter((word, copy) for bag in train for word, count in bag.items() for copy in range(count))
    copies = sorted(holding, key=lambda entry: (-holding[entry], entry))
    shared = np.cumsum([holding[entry] for entry in copies])
    if not len(copies):
        return Counter()
    f1 = 2 * shared / (np.arange(1, len(copies) + 1) * len(train) + shared[-1])
    return Counter(word for word, _ in copies[: int(f1.argmax()) + 1])


def recovered_texts(guessed: Sequence[str], ordered: bool, texts: Sequence[str]) -> list[RecoveredSentence]:
    """Return these test texts next to the texts that the attacker reads, for people to look at."""
    shown = zip(texts, guessed, bags(texts, ordered), bags(guessed, ordered), strict=False)
    return [RecoveredSentence(text, guess, (a & b).total(), a.total(), None) for text, guess, a, b in shown]


def bags(texts: Sequence[str], counted: bool) -> list[Bag]:
    """Return the words of each text, with their counts or once each."""
    return [Counter(words(text) if counted else set(words(text))) for text in texts]
