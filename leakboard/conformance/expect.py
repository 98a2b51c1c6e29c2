"""How a check says that a promise is broken, or that it cannot be checked."""

from __future__ import annotations

from typing import Any


class Broken(AssertionError):
    """A plugin breaks a promise."""

    def __init__(self, message: str, part: Any = None):
        super().__init__(message)
        self.part = part
        """The class or function of the plugin that is at fault; None where the plugin as a whole is."""


class NotChecked(Exception):
    """A promise cannot be checked here, with the reason."""


def expect(holds: Any, message: str, part: Any = None) -> None:
    """Refuse what breaks a promise.

    Raises:
        Broken: ``holds`` is not true.
    """
    if not holds:
        raise Broken(message, part)
