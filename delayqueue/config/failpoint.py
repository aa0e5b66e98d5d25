"""Ends the process at a chosen place, to try what a crash there leaves behind. Used only by `make faults`.

`DELAYQUEUE_FAILPOINT=push.after:3` ends it when the third call of the push script has returned, before its answer is
used; `push.before` ends it just before the first call is sent.
"""

import os
from typing import Final, NoReturn

VARIABLE: Final = "DELAYQUEUE_FAILPOINT"
EXIT_STATUS: Final = 87  # tells tests that it was the failpoint


class Failpoint:
    """`NAME` or `NAME:N`: the N-th time that the place NAME is reached, the process ends, as if killed."""

    def __init__(self, text: str) -> None:
        self._name, _, number = text.partition(":")
        self._left = int(number or 1)

    def reach(self, name: str) -> None:
        """Note that the program has reached this place."""
        if name == self._name:
            self._left -= 1
            if self._left == 0:
                _end()


def _end() -> NoReturn:
    os._exit(EXIT_STATUS)
