"""The syntax of the config file, as the original server reads it (go-ini); it does not know the keys.

`key = value` or `key: value`; a comment begins with `;` or `#`, also after a value; a value with such a character needs
quotes or backquotes. `%d` and `%s` are plain text.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from delayqueue.config.files import read_limited
from delayqueue.config.mistakes import Mistake, Mistakes

T = TypeVar("T")

SHOWN_CHARS: Final = 200  # of a wrong text, in the message about it


class Line(NamedTuple):
    """One `key = value`; `where` is "FILE:LINE"."""

    where: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class IniSection:
    """The lines under one `[name]` header; the top of the file has the name ""."""

    name: str
    where: str
    lines: list[Line] = field(default_factory=list)


def read(path: Path, mistakes: Mistakes) -> list[IniSection]:
    """The sections of the file in order, the top of the file first. Raises Mistake if it cannot be read at all."""
    sections = [IniSection("", str(path))]
    for where, line in _lines(path):
        if header := re.fullmatch(r"\[([^\]]*)\]\s*(?:[;#].*)?", line):
            sections.append(IniSection(header[1].strip(), where))
            continue
        with mistakes.noted():
            sections[-1].lines.append(_pair(where, line))
    return sections


def printable(text: str) -> str:
    """`text`, or its Python notation if a terminal could not show it; of a long one the start."""
    text = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
    return text if text.isprintable() else repr(text)


def parsed(
    where: str, text: str, parse: Callable[[str], T], *, secret: bool = False, unit: str = ""
) -> T:
    """The parsed value. Raises Mistake, which shows the text unless it is secret."""
    try:
        return parse(text)
    except ValueError as error:
        shown = "" if secret else f" = {printable(text)}"
        counted = f", counted in {unit}" if unit else ""
        raise Mistake(f"{where}{shown}: {error}{counted}") from None


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Position ("FILE:LINE") and text of each line that is neither empty nor a comment."""
    try:
        content = read_limited(path)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise Mistake(f"{path}: {error.strerror}: choose a readable file") from None
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise Mistake(f"{path}:{number}: is not UTF-8: save the file as UTF-8") from None
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if line and line[0] not in ";#":
            yield f"{path}:{number}", line


def _pair(where: str, line: str) -> Line:
    # not in one pattern with the blanks around the sign: that takes a time quadratic in their number
    sign = re.search("[=:]", line)
    if not sign or not sign.start():
        raise Mistake(f"{where}: {printable(line)}: must be KEY = VALUE, or begin with ;")
    key = printable(line[: sign.start()].rstrip())
    return Line(where, key, _value(f"{where}: {key}", line[sign.end() :].lstrip()))


def _value(where: str, raw: str) -> str:
    """The value without its quotes or its comment."""
    if raw[:1] not in {"`", '"', "'"}:
        return re.split("[;#]", raw, maxsplit=1)[0].strip()
    quoted = re.fullmatch(rf"{raw[0]}([^{raw[0]}]*){raw[0]}\s*(?:[;#].*)?", raw)
    if not quoted:
        raise Mistake(f"{where}: the value must end with the quote it begins with: {raw[0]}")
    return quoted[1]
