"""Options of victims on a pretrained transformer: which weights, and in which number format."""

from leakboard.models import checkpoints
from leakboard.suite.options import shared


@shared
class Pretrained:
    checkpoint: str = checkpoints.MINILM
    """Local folder, hub id (with ``revision``), or ``all-MiniLM-L6-v2`` from the hub's cache or its package."""
    revision: str | None = None
    """Full commit hash of a hub checkpoint."""
    precision: checkpoints.Precision = "auto"
    """Number format of the encoder's products; ``auto`` is bfloat16 where the processor has it."""

    @staticmethod
    def state() -> str:
        """Return whether the default checkpoint is here."""
        return checkpoints.state()

    def fingerprint(self) -> str:
        """Identify the pretrained weights."""
        return checkpoints.identity(self.checkpoint, self.revision)
