"""Options of victims on a pretrained transformer: which weights, and in which number format."""

from pathlib import Path
from typing import ClassVar, Self

from leakboard.interfaces import Victim
from leakboard.models import checkpoints
from leakboard.suite.options import shared


@shared
class Pretrained(Victim):
    checkpoint: str = checkpoints.MINILM
    """Local folder, hub id (with ``revision``), or ``all-MiniLM-L6-v2`` from the hub's cache or its package."""
    revision: str | None = None
    """Full commit hash of a hub checkpoint."""
    precision: checkpoints.Precision = "auto"
    """Number format of the encoder's products; ``auto`` is bfloat16 where the processor has it."""

    uses_gpu: ClassVar[bool] = True

    @classmethod
    def availability(cls) -> str:
        """Return whether the default checkpoint is here."""
        return checkpoints.availability()

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return the recipe on a random BERT, which is written into the folder."""
        from leakboard.models.tiny_bert import write_tiny_bert

        return cls(checkpoint=str(write_tiny_bert(folder / "tiny_bert")), precision="float32")

    def fingerprint(self) -> str:
        """Identify the pretrained weights."""
        return checkpoints.identity(self.checkpoint, self.revision)
