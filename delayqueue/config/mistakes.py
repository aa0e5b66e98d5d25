"""Gathers what is wrong with settings, so that somebody is told all of it at once."""

from collections.abc import Iterator
from contextlib import contextmanager


class Mistake(Exception):
    """Something in the settings that cannot be understood. The message is one line: where, what, and the fix."""


class Mistakes:
    """The lines of all mistakes, in the order in which they were found."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note a Mistake that the block raises, and go on after the block."""
        try:
            yield
        except Mistake as mistake:
            self.lines.append(str(mistake))
