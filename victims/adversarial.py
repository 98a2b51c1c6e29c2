"""Train an encoder to do the task and at the same time to hide the secrets.

| ``method`` | source |
|---|---|
| ``multidetasking``, ``generation``, ``declustering`` | Coavoux et al. (2018) |
| ``gradient_reversal`` | the min-max game of Li, Baldwin and Cohn (2018) |
| ``erasure`` | linear concept erasure of the finished vectors (LEACE: Belrose et al. 2023) |

On the vectors that erasure was fitted on, no linear attacker does better than a constant guess. No method makes a
privacy claim.

The code of Coavoux et al. takes three steps for each text: on the task, of the adversary, and of the encoder against
the adversary. Here the adversary takes its step first. Then encoder and head take one step on the paper's weighted sum
of losses. With ``steps_apart`` the encoder first takes a step against the secrets, and then a step on the task. The two
steps have optimisers of their own; in the paper's code they share one. Adam takes steps of similar length for gradients
of any size. So the loss of a defence can outweigh the task less than in a sum, for example declustering on AG.
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
from leakboard.models.recipe import Defence
from leakboard.models.trainable import FittedOnTask
from leakboard.suite.options import Count, part, victim
from leakboard.victims._encoders import ENCODERS
from leakboard.victims.embedding_bag import EmbeddingBag
from leakboard.victims.lstm import Lstm

if TYPE_CHECKING:
    from concept_erasure import LeaceEraser

    from leakboard.models.encoder import Encoder

Weight = Annotated[float, Field(ge=0)]


@dataclass(frozen=True)
class Method:
    """The options of a method, and whether it needs secrets."""

    options: tuple[str, ...]
    """Options that the method reads; all methods also read ``encoder`` and ``alpha``."""
    beta: float = 1.0
    """Default of ``beta``: the weight in the paper, if the paper gives one."""
    needs_secrets: bool = True


TRAINED = ("beta", "least_privacy", "steps_apart")
"""Options of every method that is trained into the encoder."""
METHODS: Mapping[str, Method] = {
    "multidetasking": Method((*TRAINED, "hidden", "learning_rate")),
    "gradient_reversal": Method((*TRAINED, "hidden", "learning_rate")),
    "generation": Method((*TRAINED, "learning_rate", "characters"), needs_secrets=False),
    "declustering": Method(TRAINED, beta=0.1),
    "erasure": Method(()),
}


@victim(revision=1)
class Adversarial(Victim):
    method: Literal["multidetasking", "gradient_reversal", "generation", "declustering", "erasure"]
    """Method that hides the secrets; only ``generation`` needs no secrets."""
    encoder: part(ENCODERS) = Field(default=Lstm())  # type: ignore[valid-type]
    """Victim that makes the vectors, with its own options."""
    alpha: Weight = 1.0
    """Weight of the task's loss."""
    beta: Weight | None = None
    """Weight of the defence (the paper's alpha for ``declustering``, Li et al.'s lambda); null: 1, declustering 0.1."""
    hidden: Count = 64
    """ReLU units of the adversary."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Learning rate of the adversary (Adam)."""
    characters: Count = 100
    """Longest text that the generator reads (characters)."""
    least_privacy: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Keep the most accurate epoch with at least this privacy on dev (linear attackers); null: the encoder chooses."""
    steps_apart: bool = False
    """The encoder takes a step against the secrets before each step on the task, instead of one step on the sum."""

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
        for name in dict.fromkeys(name for method in METHODS.values() for name in method.options):
            if name not in METHODS[self.method].options and (value := getattr(self, name)) != defaults[name]:
                allowed = ", ".join(method for method in METHODS if name in METHODS[method].options)
                raise RequestError(f"{name}: {value} is not allowed with method {self.method!r} (allowed: {allowed})")

    def fit(self, corpus: Corpus, seed: int) -> "FittedAdversarial":
        """Train encoder, head and adversary.

        Raises:
            RequestError: there are no weights, the corpus has no task label, or it has no secret for a method that
                needs secrets.
        """
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
                encoder=encoder,
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

        fitted = self.encoder.fit_on_task("adversarial", corpus, seed, defend)
        if self.least_privacy and all(max(criterion.history) < self.least_privacy for criterion in criteria):
            log_progress(f"least_privacy: no epoch reached {self.least_privacy}; the most private epoch is kept")
        eraser = fit_eraser(fitted.encoder, corpus) if self.method == "erasure" else None
        return FittedAdversarial(fitted.encoder, fitted.head, eraser)

    def load(self, folder: Path) -> "FittedAdversarial":
        """Return a saved encoder, its head, and its eraser if there is one."""
        fitted, eraser = self.encoder.load(folder), None
        if self.method == "erasure":
            from concept_erasure import LeaceEraser
            from safetensors.torch import load_file

            eraser = LeaceEraser(**load_file(folder / "eraser.safetensors"))
        return FittedAdversarial(fitted.encoder, fitted.head, eraser)


def fit_eraser(encoder: "Encoder", corpus: Corpus) -> "LeaceEraser":
    """Fit on train an eraser of all values of all secrets.

    Rare secrets have small singular values; the low tolerance keeps them.
    """
    import torch
    from concept_erasure import LeaceEraser

    vectors = torch.from_numpy(encoder.documents(corpus.texts("train"))).double()
    concepts = np.hstack([np.eye(len(s.values))[corpus.column("train", s.name)] for s in corpus.secrets])
    if (directions := sum(len(s.values) - 1 for s in corpus.secrets)) >= vectors.shape[1]:
        log_progress(f"erasing {directions} directions of {vectors.shape[1]} leaves nothing")
    return LeaceEraser.fit(vectors, torch.from_numpy(concepts), svd_tol=1e-8)


@dataclass(frozen=True)
class FittedAdversarial(FittedOnTask):
    eraser: "LeaceEraser | None" = None

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return the encoder's vectors, with the secrets erased if there is an eraser; nothing is random.

        The head was trained on vectors before erasure.
        """
        vectors = super().publish_documents(texts, rng)
        if self.eraser is None:
            return vectors
        import torch

        return self.eraser(torch.from_numpy(vectors).double()).float().numpy()

    def save(self, folder: Path) -> None:
        """Write encoder, head and eraser (safetensors, JSON)."""
        super().save(folder)
        if self.eraser is not None:
            from safetensors.torch import save_file

            parts = {name: getattr(self.eraser, name).contiguous() for name in ("proj_left", "proj_right", "bias")}
            save_file(parts, folder / "eraser.safetensors")
