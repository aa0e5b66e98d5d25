"""One setting: its name, default, unit, meaning and parser."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

PREFIX: Final = "DELAYQUEUE_"

T = TypeVar("T")


def variable(key: str) -> str:
    """The environment variable of an option."""
    return PREFIX + key.upper().replace(".", "_")


@dataclass(frozen=True, slots=True)
class Option:
    """A row of the table `Config` (config.py); `default` is text, `unit` is "" if there is none."""

    key: str
    default: str
    unit: str
    help: str
    parse: Callable[[str], object]
    secret: bool

    @property
    def variable(self) -> str:
        """The environment variable of this option."""
        return variable(self.key)


def option(
    key: str,
    default: str,
    parse: Callable[[str], T],
    help: str,  # noqa: A002  # argparse's word
    *,
    unit: str = "",
    secret: bool = False,
) -> T:
    row = Option(key, default, unit, help, parse, secret)
    # keeps a secret out of repr(), and so out of logs
    made: T = field(default=parse(default), repr=not secret, metadata={"option": row})
    return made
