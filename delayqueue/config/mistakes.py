"""Collects mistakes in settings, so that the user is told all of them at once."""

from collections.abc import Iterator
from contextlib import contextmanager


class Mistake(Exception):
    """An invalid setting. The message is one line: where, what, and the fix."""


class Mistakes:
    """The lines of all mistakes, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Collect a Mistake that the block raises, and go on after the block."""
        try:
            yield
        except Mistake as mistake:
            self.lines.append(str(mistake))
