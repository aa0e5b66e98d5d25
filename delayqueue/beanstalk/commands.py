"""The commands: how each line begins, and what may follow. No IO.

They are parsed as beanstalkd parses them, which is laxer than its documentation.
"""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

PUT: Final = "put"
DELETE: Final = "delete"
MAX_TUBE_BYTES: Final = 200
MOST_U32: Final = 2**32 - 1
MOST_U64: Final = 2**64 - 1
MOST_INT: Final = 2**31 - 1


class Command(NamedTuple):
    """A command to carry out."""

    name: str
    args: tuple[Any, ...]


class Refusal(NamedTuple):
    """An answer that replaces the command; `counted` is the command that it counts as, None = none."""

    answer: bytes
    counted: str | None = None


QUIT: Final = Command("quit", ())
BAD_FORMAT: Final = Refusal(b"BAD_FORMAT\r\n")
OUT_OF_MEMORY: Final = b"OUT_OF_MEMORY\r\n"  # the protocol's way to say: try again later
UNKNOWN_COMMAND: Final = Refusal(b"UNKNOWN_COMMAND\r\n")

Args = tuple[Any, ...] | None  # None = they are invalid
Reader = Callable[[bytes], Args]

_NUMBERS: Final = [re.compile(b" *([0-9]+)" + b" +([0-9]+)" * more) for more in range(3)]
_COUNT: Final = re.compile(rb"[ \t\n\v\f\r]*([+-]?)([0-9]+)")  # as strtoul() parses it
_TUBE: Final = re.compile(rb"[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]{0,%d}" % (MAX_TUBE_BYTES - 1))
_PAUSE: Final = re.compile(rb" *([^ ]+) +([0-9]+)")


# The start of a browser's request; beanstalkd's commands are in lower case.
_HTTP: Final = tuple(
    b"%b /" % method
    for method in (b"GET", b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"PATCH")
)


def is_http(line: bytes) -> bool:
    """Whether this is an HTTP request: a page in a browser could write commands into its body."""
    return line.startswith(_HTTP)


def is_tube(name: str) -> bool:
    """Whether a topic can be named here."""
    return name.isascii() and _TUBE.fullmatch(name.encode()) is not None


def _nothing(rest: bytes) -> Args:
    return None if rest else ()


def _numbers(*mosts: int) -> Reader:
    pattern = _NUMBERS[len(mosts) - 1]

    def read(rest: bytes) -> Args:
        found = pattern.fullmatch(rest)
        if found is None:
            return None
        numbers = tuple(map(int, found.groups()))
        return None if any(map(int.__gt__, numbers, mosts)) else numbers

    return read


def _timeout(rest: bytes) -> Args:
    """Whatever follows the number is ignored."""
    found = _NUMBERS[0].match(rest)
    return (int(found[1]),) if found and int(found[1]) <= MOST_INT else None


def _count(rest: bytes) -> Args:
    """A number as C's strtoul() gives it in 32 bits: -1 is the largest. Whatever follows it is ignored."""
    found = _COUNT.match(rest)
    if found is None or int(found[2]) > MOST_U64:
        return None
    number = int(found[2])
    return ((-number if found[1] == b"-" else number) & MOST_U32,)


def _tube(rest: bytes) -> Args:
    return (rest.decode(),) if _TUBE.fullmatch(rest) else None


def _pause(rest: bytes) -> Args:
    found = _PAUSE.fullmatch(rest)
    if found is None or int(found[2]) > MOST_U32 or not _TUBE.fullmatch(found[1]):
        return None
    return found[1].decode(), int(found[2])


_id: Final = _numbers(MOST_U64)

# The first name that the line begins with counts, as in beanstalkd: `reservexyz` is a reserve with wrong arguments. The
# parser itself knows a correct `put`.
_FORMS: Final[dict[bytes, Reader]] = {
    b"put ": lambda _: None,
    b"peek ": _id,
    b"peek-ready": _nothing,
    b"peek-delayed": _nothing,
    b"peek-buried": _nothing,
    b"reserve-with-timeout ": _timeout,
    b"reserve-job ": _id,
    b"reserve": _nothing,
    b"delete ": _id,
    b"release ": _numbers(MOST_U64, MOST_U32, MOST_U32),
    b"bury ": _numbers(MOST_U64, MOST_U32),
    b"kick ": _count,
    b"kick-job ": _id,
    b"touch ": _id,
    b"stats-job ": _id,
    b"stats-tube ": _tube,
    b"stats": _nothing,
    b"use ": _tube,
    b"watch ": _tube,
    b"ignore ": _tube,
    b"list-tubes-watched": _nothing,
    b"list-tube-used": _nothing,
    b"list-tubes": _nothing,
    b"quit": lambda _: (),
    b"pause-tube": _pause,
}
_KNOWN: Final = {form: (form.decode().strip(), read) for form, read in _FORMS.items()}
NAMES: Final = tuple(name for name, _ in _KNOWN.values())
WHOLE: Final = {  # lines that are commands as they are
    form: Command(name, ()) for form, (name, read) in _KNOWN.items() if read is _nothing
}


def parse_line(line: bytes) -> Command | Refusal:
    """Parse a line without its CRLF."""
    word, space, _ = line.partition(b" ")
    form = word + space
    known = _KNOWN.get(form)
    if known is None:
        form = next((each for each in _FORMS if line.startswith(each)), b"")
        if not form:
            return QUIT if is_http(line) else UNKNOWN_COMMAND
        known = _KNOWN[form]
    name, read = known
    args = read(line[len(form) :])
    return BAD_FORMAT if args is None else Command(name, args)
