"""The syntax of the config file, as the original server reads it (go-ini), and nothing about its keys.

`key = value` or `key: value`; a comment begins with `;` or `#`, also after a value; a value that
holds such a character stands in quotes or backquotes. `%d` and `%s` are plain text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class IniError(Exception):
    """A file that cannot be read. The message is one line with the file, the line and the fix."""


class Line(NamedTuple):
    """One `key = value`; `where` is "FILE:LINE"."""

    where: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Section:
    """The lines under one `[name]` header; the top of the file has the name ""."""

    name: str
    where: str
    lines: list[Line] = field(default_factory=list)


def read(path: Path) -> list[Section]:
    """The sections of the file in its order, the top of the file first. Raises IniError."""
    sections = [Section("", str(path))]
    for where, line in _lines(path):
        if header := re.fullmatch(r"\[([^\]]*)\]\s*(?:[;#].*)?", line):
            sections.append(Section(header[1].strip(), where))
            continue
        pair = re.fullmatch(r"([^=:]+?)\s*[=:]\s*(.*)", line)
        if not pair:
            raise IniError(f"{where}: {printable(line)}: must be KEY = VALUE, or begin with ;")
        key = printable(pair[1])
        sections[-1].lines.append(Line(where, key, _value(f"{where}: {key}", pair[2])))
    return sections


def printable(text: str) -> str:
    """`text`, or how Python would write it where a terminal could not show it."""
    return text if text.isprintable() else repr(text)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Where ("FILE:LINE") and text of each line that is neither empty nor a comment."""
    try:
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise IniError(f"{path}: {error.strerror}: name a file that can be read") from None
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise IniError(f"{path}:{number}: is not UTF-8: save the file as UTF-8") from None
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if line and line[0] not in ";#":
            yield f"{path}:{number}", line


def _value(where: str, raw: str) -> str:
    """What `raw` means without its quotes or its comment."""
    if raw[:1] not in {"`", '"', "'"}:
        return re.split("[;#]", raw, maxsplit=1)[0].strip()
    quoted = re.fullmatch(rf"{raw[0]}([^{raw[0]}]*){raw[0]}\s*(?:[;#].*)?", raw)
    if not quoted:
        raise IniError(f"{where}: the value must end with the quote it begins with: {raw[0]}")
    return quoted[1]
