"""Share the options of victims on a pretrained transformer: its weights and number format."""

from pathlib import Path
from typing import ClassVar, Self

from leakboard.interfaces import Victim
from leakboard.models import checkpoints
from leakboard.models.tiny_bert import write_tiny_bert
from leakboard.suite.options import shared


@shared
class PretrainedVictim(Victim):
    """A victim on a pretrained transformer."""

    checkpoint: str = checkpoints.MINILM
    """Local folder, hub id (with ``revision``), or ``all-MiniLM-L6-v2`` from the hub's cache or its package."""
    revision: str | None = None
    """Full commit hash of a hub checkpoint."""
    precision: checkpoints.Precision = "auto"
    """Number format of the encoder's products; ``auto`` is bfloat16 if the processor has it."""

    uses_gpu: ClassVar[bool] = True

    @classmethod
    def availability(cls) -> str:
        """Return ``ready``, or how to install the default checkpoint."""
        return checkpoints.availability()

    @classmethod
    def example(cls, folder: Path) -> Self:
        """Return the victim on a random BERT, which is written into the folder."""
        return cls(checkpoint=str(write_tiny_bert(folder / "tiny_bert")), precision="float32")

    def fingerprint(self) -> str:
        """Identify the pretrained weights."""
        return checkpoints.identity(self.checkpoint, self.revision)
