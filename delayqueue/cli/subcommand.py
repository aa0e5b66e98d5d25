"""What a subcommand of the command line is, and its exit statuses."""

from argparse import SUPPRESS, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final, NamedTuple

from delayqueue.cli.output import write, write_error
from delayqueue.cli.words import length, moment, whole
from delayqueue.log import one_line

DONE: Final = 0
REFUSED: Final = 1  # the queue refused, or had nothing
USAGE: Final = 2  # the command line or a setting is wrong; argparse's own status
UNREACHABLE: Final = 3


# what a value is, by the word that stands for it in --help
KINDS: Final = {"N": whole, "LENGTH": length, "TIME": moment}


class Argument(NamedTuple):
    """One argument, as argparse's add_argument takes it."""

    flags: tuple[str, ...]
    options: dict[str, Any]


def argument(*flags: str, **options: Any) -> Argument:
    """One argument, as argparse's add_argument takes it."""
    return Argument(flags, options)


def option(spec: str, text: str, **more: Any) -> Argument:
    """An option as --help shows it, such as `--count N`; its value is of the kind that the word stands for, or text."""
    name, _, word = spec.partition(" ")
    kind = {"metavar": word, "type": KINDS.get(word)} if word else {}
    return argument(name, help=text, **(kind | more))


def choice(spec: str, names: Iterable[str], text: str) -> Argument:
    """An option whose value is one of these names."""
    return option(spec, text, choices=list(map(str, names)))


def flag(name: str, text: str) -> Argument:
    """An option without a value: True, or None if it is not given."""
    return argument(name, action="store_const", const=True, help=text)


# allowed after the verb as well as before it
CONFIG_FILE: Final = argument(
    "-c", dest="config", metavar="FILE", type=Path, default=SUPPRESS, help="config file"
)


def _no_file(_: str) -> Any:
    raise ArgumentTypeError("this verb reads no config file; leave it out")


NO_CONFIG_FILE: Final = argument(
    "-c", dest=SUPPRESS, type=_no_file, default=SUPPRESS, help=SUPPRESS
)


def say(text: str) -> None:
    """Print text on standard output, at once: errors may follow. Raises OutputError."""
    write(f"{text}\n")


def complain(lines: Iterable[str], status: int) -> int:
    """Print on standard error what is wrong, one thing per line. Returns the status."""
    with suppress(OSError):  # the status says that something is wrong
        for line in lines:
            write_error(f"delay-queue: {one_line(line)}\n")
    return status


def late(function: str) -> Callable[..., Any]:
    """A function by its name, MODULE:NAME, imported when it is called.

    The server and the worker take half a second to import, the settings a tenth; `delay-queue stats` does not have to
    wait for that.
    """

    def call(*arguments: Any) -> Any:
        return resolve_name(function)(*arguments)

    return call


class Subcommand(NamedTuple):
    """A subcommand, such as `push`: `run` returns the exit status."""

    name: str
    help: str
    run: Callable[[Namespace], int]
    arguments: tuple[Argument, ...] = ()
    details: str = ""  # printed by `delay-queue NAME --help` in addition to the arguments


Families = Mapping[str, tuple[Subcommand, ...]]  # in the order in which --help shows them
