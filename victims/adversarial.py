"""Defences that are trained into the encoder: it learns the task and to hide the secrets, at once.

The three methods of Coavoux et al. (2018), the min-max game of Li, Baldwin and Cohn (2018), and linear concept erasure
on the finished vectors (LEACE: Belrose et al. 2023), which no linear attacker can beat. None makes a privacy claim.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from concept_erasure import LeaceEraser
from pydantic import Field
from safetensors.torch import load_file, save_file

from leakboard.errors import RequestError
from leakboard.interfaces import Corpus, Floats, Publication, Texts
from leakboard.notes import note
from leakboard.options import part, victim
from leakboard.task_model import Defence, FittedOnTask, fit_task_model, load_task_model
from leakboard.victims._adversaries import TERMS, Setting, dev_privacy
from leakboard.victims._encoders import ENCODERS
from leakboard.victims.lstm import Lstm

Weight = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


@victim
class Adversarial:
    method: Literal["multidetasking", "gradient_reversal", "generation", "declustering", "erasure"]
    """What hides the secrets; ``generation`` alone needs none."""
    encoder: part(ENCODERS) = Field(default=Lstm())  # type: ignore[valid-type]
    """What makes the vectors, with the options of the victim of that name."""
    alpha: Weight = 1.0
    """Weight of the task's loss."""
    beta: Weight | None = None
    """Weight of the defence (lambda of Li et al.); null is the paper's 1, and 0.1 for ``declustering``."""
    hidden: Count = 64
    """ReLU units of the adversary."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Adam's, of the adversary."""
    characters: Count = 100
    """Longest text that the generator reads (characters)."""
    least_privacy: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Keep the most accurate epoch whose privacy on dev (linear attackers) is at least this; null is the recipe's."""

    publishes: ClassVar[tuple[Publication, ...]] = ("documents",)

    def fingerprint(self) -> str:
        """Identify the encoder's pretrained weights."""
        return self.encoder.fingerprint()

    def fit(self, corpus: Corpus, seed: int) -> "FittedAdversarial":
        """Train encoder, head and adversary.

        Raises:
            RequestError: no weights, or the corpus has no task label, or none of the secrets that the method needs.
        """
        if not corpus.secrets and (self.least_privacy or self.method != "generation"):
            asked = f"least_privacy: {self.least_privacy}" if self.least_privacy else f"method: {self.method!r}"
            raise RequestError(f"adversarial: {asked} needs secrets, and {corpus.name} has none")

        def defend(encoder: Any, encode: Any) -> Defence:
            select = (lambda error: self._within_budget(error, corpus, encode)) if self.least_privacy else None
            if self.method == "erasure":
                return Defence(task_weight=self.alpha, select=select)
            size, rate = self.hidden, self.learning_rate
            given = Setting(corpus, encoder.dimension, encoder.device, encode, seed, size, rate, self.characters)
            adversary, penalty = TERMS[self.method](given)
            default = 0.1 if self.method == "declustering" else 1.0
            beta = default if self.beta is None else self.beta
            weighted = (lambda vectors, rows: beta * penalty(vectors, rows)) if beta else None
            adversaries = [adversary] if adversary else []
            return Defence(adversaries=adversaries, task_weight=self.alpha, penalty=weighted, select=select)

        model = fit_task_model(self.encoder, "adversarial", corpus, seed, defend)
        if self.method != "erasure":
            return FittedAdversarial(model)
        vectors = torch.from_numpy(model.encoder.documents(corpus.texts("train"))).double()
        concepts = [np.eye(len(s.values))[corpus.column("train", s.name)] for s in corpus.secrets]
        return FittedAdversarial(model, LeaceEraser.fit(vectors, torch.from_numpy(np.hstack(concepts))))

    def _within_budget(self, error: float, corpus: Corpus, encode: Any) -> float:
        """Return the error rate on dev, or more than 1, and the more the less private, where privacy is too low."""
        assert self.least_privacy is not None
        privacy = dev_privacy(corpus, encode)
        note(f"dev accuracy {1 - error:.4f}, dev privacy {privacy:.4f} (at least {self.least_privacy} is asked)")
        return error if privacy >= self.least_privacy else 1 + self.least_privacy - privacy

    def load(self, folder: Path) -> "FittedAdversarial":
        """Return a saved encoder, its head, and what erases."""
        path = folder / "eraser.safetensors"
        eraser = LeaceEraser(**load_file(path)) if path.is_file() else None
        return FittedAdversarial(load_task_model(self.encoder, folder), eraser)


@dataclass(frozen=True)
class FittedAdversarial(FittedOnTask):
    eraser: LeaceEraser | None = None
    claim: None = None

    def publish_documents(self, texts: Texts, rng: np.random.Generator) -> Floats:
        """Return the encoder's vectors, with the secrets erased where the method does so; nothing is random."""
        vectors = self.model.encoder.documents(texts)
        return vectors if self.eraser is None else self.eraser(torch.from_numpy(vectors).double()).float().numpy()

    def save(self, folder: Path) -> None:
        """Write encoder, head and eraser (safetensors, JSON)."""
        self.model.save(folder)
        if self.eraser is not None:
            parts = {name: getattr(self.eraser, name).contiguous() for name in ("proj_left", "proj_right", "bias")}
            save_file(parts, folder / "eraser.safetensors")
