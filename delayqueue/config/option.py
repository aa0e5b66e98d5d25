"""One setting: its name, default, unit, meaning and parser."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

PREFIX: Final = "DELAYQUEUE_"
UNITS: Final = ("s", "ms", "bytes")
STORE: Final = "redis_"

T = TypeVar("T")


def variable(key: str) -> str:
    """The environment variable of an option."""
    return PREFIX + key.upper().replace(".", "_")


@dataclass(frozen=True, slots=True)
class Option:
    """A row of the table `Config` (config.py); `field` is its name there, `default` is text."""

    field: str
    default: str
    parse: Callable[[str], object]
    help: str
    secret: bool

    @property
    def unit(self) -> str:
        """The unit of the setting, from the name of its field; "" if that has none."""
        last = self.field.rpartition("_")[2]
        return last if last in UNITS else ""

    @property
    def key(self) -> str:
        """The setting's name in a config file: that of redis_read_timeout_ms is redis.read_timeout."""
        name = self.field.removesuffix(f"_{self.unit}")
        return f"redis.{name.removeprefix(STORE)}" if name.startswith(STORE) else name

    @property
    def variable(self) -> str:
        """The environment variable of this option."""
        return variable(self.key)


def option(
    default: str,
    parse: Callable[[str], T],
    help: str,  # noqa: A002  # argparse's word
    *,
    secret: bool = False,
) -> T:
    row = partial(Option, default=default, parse=parse, help=help, secret=secret)
    # keeps a secret out of repr(), and so out of logs
    made: T = field(default=parse(default), repr=not secret, metadata={"option": row})
    return made
