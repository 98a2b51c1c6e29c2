"""Defences that are trained into the encoder: it learns the task and to hide the secrets, at once.

The three methods of Coavoux et al. (2018), the min-max game of Li, Baldwin and Cohn (2018), and linear concept erasure
of the finished vectors (LEACE: Belrose et al. 2023): on the vectors that it was fitted on, no linear attacker does
better than a constant. None makes a privacy claim.

Theirs steps three times a text: task, adversary, encoder against it. Here the adversary steps first, then encoder and
head at once, on the weighted sum that the paper writes; with ``steps_apart`` the encoder steps against the secrets
first, by an optimiser of its own (theirs share one), and then on the task. Adam makes steps of like length of gradients
of any size, so that a term that drowns the task in a sum, as declustering does on AG, drowns it less.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Floats, Texts, Victim
from leakboard.logs import log_progress
from leakboard.models.task_model import Defence, TaskModel
from leakboard.models.trainable import FittedOnTask
from leakboard.suite.options import Count, part, victim
from leakboard.victims._encoders import ENCODERS
from leakboard.victims.embedding_bag import EmbeddingBag
from leakboard.victims.lstm import Lstm

if TYPE_CHECKING:
    from concept_erasure import LeaceEraser

Weight = Annotated[float, Field(ge=0)]


@dataclass(frozen=True)
class Method:
    """What a method asks for."""

    reads: tuple[str, ...]
    """Options."""
    beta: float = 1.0
    """Weight in the paper, where it has one."""
    needs_secrets: bool = True


OF_TRAINED = ("beta", "least_privacy", "steps_apart")
"""Options of whatever is trained in."""
METHODS: Mapping[str, Method] = {
    "multidetasking": Method((*OF_TRAINED, "hidden", "learning_rate")),
    "gradient_reversal": Method((*OF_TRAINED, "hidden", "learning_rate")),
    "generation": Method((*OF_TRAINED, "learning_rate", "characters"), needs_secrets=False),
    "declustering": Method(OF_TRAINED, beta=0.1),
    "erasure": Method(()),
}


@victim(revision=1)
class Adversarial(Victim):
    method: Literal["multidetasking", "gradient_reversal", "generation", "declustering", "erasure"]
    """What hides the secrets; ``generation`` alone needs none."""
    encoder: part(ENCODERS) = Field(default=Lstm())  # type: ignore[valid-type]
    """What makes the vectors, with the options of the victim of that name."""
    alpha: Weight = 1.0
    """Weight of the task's loss."""
    beta: Weight | None = None
    """Weight of the defence (the paper's alpha for ``declustering``, Li et al.'s lambda); null: 1, declustering 0.1."""
    hidden: Count = 64
    """ReLU units of the adversary."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Adam's, of the adversary."""
    characters: Count = 100
    """Longest text that the generator reads (characters)."""
    least_privacy: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Keep the most accurate epoch whose privacy on dev (linear attackers) is at least this; null is the recipe's."""
    steps_apart: bool = False
    """The encoder takes a step of its own against the secrets before each on the task, instead of one on the sum."""

    uses_gpu: ClassVar[bool] = True

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return a defence of an encoder that is trained for one epoch."""
        return cls(method="multidetasking", encoder=EmbeddingBag(epochs=1), hidden=8)

    def fingerprint(self) -> str:
        """Identify the encoder's pretrained weights."""
        return self.encoder.fingerprint()

    def __post_init__(self) -> None:
        defaults = {option.name: option.default for option in dataclasses.fields(self)}
        for name in dict.fromkeys(name for method in METHODS.values() for name in method.reads):
            if name not in METHODS[self.method].reads and (value := getattr(self, name)) != defaults[name]:
                allowed = ", ".join(method for method in METHODS if name in METHODS[method].reads)
                raise RequestError(f"{name}: {value} is not allowed with method {self.method!r} (allowed: {allowed})")

    def fit(self, corpus: Corpus, seed: int) -> "FittedAdversarial":
        """Train encoder, head and adversary.

        Raises:
            RequestError: no weights, or the corpus has no task label, or none of the secrets that the method needs.
        """
        from leakboard.models.task_training import fit_task_model
        from leakboard.victims._adversarial.adversaries import TERMS, AdversaryContext
        from leakboard.victims._adversarial.privacy_criterion import EmpiricalPrivacyCriterion

        method, term, criteria = METHODS[self.method], TERMS.get(self.method), list[EmpiricalPrivacyCriterion]()
        if not corpus.secrets and (self.least_privacy or method.needs_secrets):
            request = f"least_privacy: {self.least_privacy}" if self.least_privacy else f"method: {self.method!r}"
            raise RequestError(f"adversarial: {request} needs secrets, and {corpus.name} has none")

        def defend(encoder: Any, encode: Any, batches: Any) -> Defence:
            if term is None:
                return Defence(task_weight=self.alpha)
            context = AdversaryContext(
                corpus=corpus,
                dimension=encoder.dimension,
                device=encoder.device,
                encode=encode,
                batches=batches,
                seed=seed,
                hidden=self.hidden,
                learning_rate=self.learning_rate,
                characters=self.characters,
            )
            adversary, penalty = term(context)
            beta = method.beta if self.beta is None else self.beta
            if self.least_privacy:
                criteria.append(EmpiricalPrivacyCriterion(self.least_privacy, corpus, encode))
            return Defence(
                adversaries=[adversary] if adversary else [],
                task_weight=self.alpha,
                penalty=(lambda vectors, rows: beta * penalty(vectors, rows)) if beta else None,
                steps_apart=self.steps_apart,
                criterion=criteria[-1] if criteria else None,
            )

        model = fit_task_model(self.encoder, "adversarial", corpus, seed, defend)
        if self.least_privacy and all(max(criterion.history) < self.least_privacy for criterion in criteria):
            log_progress(f"least_privacy: {self.least_privacy} was reached in no epoch; the most private is kept")
        return FittedAdversarial(model, _eraser(model, corpus) if self.method == "erasure" else None)

    def load(self, folder: Path) -> "FittedAdversarial":
        """Return a saved encoder, its head, and what erases."""
        from leakboard.models.task_training import load_task_model

        path = folder / "eraser.safetensors"
        return FittedAdversarial(load_task_model(self.encoder, folder), _saved(path) if path.is_file() else None)


def _saved(path: Path) -> "LeaceEraser":
    from concept_erasure import LeaceEraser
    from safetensors.torch import load_file

    return LeaceEraser(**load_file(path))


def _eraser(model: TaskModel, corpus: Corpus) -> "LeaceEraser":
    """Fit on train, for all values of all secrets; singular values of rare secrets are small, and are kept."""
    import torch
    from concept_erasure import LeaceEraser

    vectors = torch.from_numpy(model.encoder.documents(corpus.texts("train"))).double()
    concepts = np.hstack([np.eye(len(s.values))[corpus.column("train", s.name)] for s in corpus.secrets])
    if (directions := sum(len(s.values) - 1 for s in corpus.secrets)) >= vectors.shape[1]:
        log_progress(f"erasing {directions} directions of {vectors.shape[1]} leaves nothing")
    return LeaceEraser.fit(vectors, torch.from_numpy(concepts), svd_tol=1e-8)


@dataclass(frozen=True)
class FittedAdversarial(FittedOnTask):
    eraser: "LeaceEraser | None" = None

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return the encoder's vectors, with the secrets erased where the method does so; nothing is random.

        The head was trained on vectors that nothing was erased of.
        """
        vectors = self.model.encoder.documents(texts)
        if self.eraser is None:
            return vectors
        import torch

        return self.eraser(torch.from_numpy(vectors).double()).float().numpy()

    def save(self, folder: Path) -> None:
        """Write encoder, head and eraser (safetensors, JSON)."""
        self.model.save(folder)
        if self.eraser is not None:
            from safetensors.torch import save_file

            parts = {name: getattr(self.eraser, name).contiguous() for name in ("proj_left", "proj_right", "bias")}
            save_file(parts, folder / "eraser.safetensors")
