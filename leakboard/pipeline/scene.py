"""What an attack meets: the victim's side, and the view that the threat model allows of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leakboard.data.corpora import one_user_a_text
from leakboard.data.words import words
from leakboard.errors import RequestError
from leakboard.interfaces import (
    Attack,
    AttackerView,
    Corpus,
    FittedVictim,
    Floats,
    KnownTexts,
    PublishedWords,
    Secret,
    Texts,
    Victim,
)
from leakboard.pipeline.fitting import Names
from leakboard.pipeline.publications import Publications, publisher
from leakboard.pipeline.training_data import Candidates, draw_candidates, has_users, training_unit, without

CANDIDATES = 4_000
"""Units that an attack on membership is asked about, where it does not say."""


@dataclass(frozen=True)
class Gold:
    """A word table whose neighbours count as right."""

    words: PublishedWords
    queries: tuple[str, ...]


@dataclass(frozen=True)
class Scene:
    """Everything on the victim's side of an attack."""

    corpus: Corpus
    """The victim's; its train split is what the victim was trained on."""
    auxiliary: Corpus
    """The attacker's own texts."""
    victim: Victim
    fitted: Callable[[], FittedVictim]
    """Loads the fitted victim, for attacks that ask it again."""
    published: Publications
    gold: Gold | None = None
    share: float = 1.0
    """Of the distinct texts of train that the victim was given; the attacker may have the others."""
    strangers: bool = False
    """Whether the attacker's texts are another dataset's."""


def targets(attack: Attack, corpus: Corpus) -> tuple[Secret, ...]:
    """Return the secrets of the corpus that an attack guesses; none for attacks on words or whole texts."""
    return tuple(secret for secret in corpus.secrets if secret.kind == attack.target)


def on_training(attack: Attack) -> bool:
    """Return whether an attack is on what a word table was trained on, not on what is encoded."""
    return attack.target == "membership" or getattr(attack, "audits", "text") == "training"


def candidates(attack: Attack, scene: Scene, names: Names) -> Candidates | None:
    """Return who an attack on membership is asked about; None for other attacks."""
    if attack.target != "membership":
        return None
    unit = training_unit(attack, scene.published.claim, scene.corpus)
    most = int(getattr(attack, "candidates", CANDIDATES))
    return draw_candidates(scene.corpus, unit, most, names.stream("candidates"), scene.share)


def observations(attack: Attack) -> int:
    """Return how many publications of a test text an attack sees."""
    return int(getattr(attack, "observations", 1))


def view(
    attack: Attack, scene: Scene, names: Names, asked: set[str], asked_about: Candidates | None = None
) -> AttackerView:
    """Return what an attack may use; ``asked`` receives every word that it asks the victim about."""
    secrets = targets(attack, scene.corpus)
    query_stream, publish = names.stream("query"), publisher(scene.victim, scene.fitted)
    published = scene.published.words

    def ask(texts: Texts) -> None:
        asked.update(word for text in texts for word in words(text))

    def query(texts: Texts) -> Floats:
        ask(texts)
        return publish(texts, query_stream)

    def query_words(texts: Texts) -> PublishedWords:
        answer = scene.fitted().publish_words(texts, query_stream)
        if answer.text_index is not None:
            return answer
        ask(texts)
        wanted = {word for text in texts for word in words(text)}
        rows = [row for row, word in enumerate(answer.words) if word in wanted]
        return PublishedWords([answer.words[row] for row in rows], answer.vectors[rows])

    auxiliary = scene.auxiliary.only("train", "dev")
    if asked_about:
        auxiliary = without(auxiliary, asked_about, scene.strangers)

    def imitate(seed: int, corpus: Corpus | None = None, *, noise: bool = True) -> FittedVictim:
        bare = hasattr(scene.victim, "without_noise") and not noise
        victim: Victim = scene.victim.without_noise() if bare else scene.victim  # type: ignore[attr-defined]
        own = corpus or auxiliary
        return victim.fit(own if has_users(own) or not has_users(scene.corpus) else one_user_a_text(own), seed)

    return AttackerView(
        secrets=secrets,
        train=_known(attack, scene, "train"),
        dev=_known(attack, scene, "dev"),
        auxiliary=auxiliary,
        query=query,
        query_words=query_words,
        imitate=imitate,
        contextual=None if published is None else published.text_index is not None,
        claim=scene.published.claim,
        mechanism=lambda: releasing(scene.fitted()).mechanism,
        inputs=lambda texts: releasing(scene.fitted()).inputs(texts),
        words=tuple(published.words) if on_training(attack) and published else (),
        unit=training_unit(attack, scene.published.claim, scene.corpus) if on_training(attack) else "document",
        candidates=asked_about.units if asked_about else (),
    )


def releasing(fitted: FittedVictim) -> Any:
    """Return a fitted victim that publishes releases.

    Raises:
        RequestError: it has no mechanism.
    """
    if getattr(fitted, "mechanism", None) is None:
        raise RequestError(f"{type(fitted).__name__} has no mechanism to release other vectors by")
    return fitted


def _known(attack: Attack, scene: Scene, split: str) -> KnownTexts:
    if attack.needs != "documents":  # whose texts these are is the auxiliary corpus's to say
        return KnownTexts(Texts([]), {}, None)
    vectors = scene.published.documents.get(split)
    values = {secret.name: scene.corpus.column(split, secret.name) for secret in targets(attack, scene.corpus)}
    return KnownTexts(scene.corpus.texts(split), values, None if vectors is None else vectors.copy())
