"""Counts the lines of docs/ by who writes them: `python -m scripts.lines`.

A line of scripts/chinese.json is one written in Chinese.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from scripts import fields
from scripts.generate import FENCED, MARKED, MATRIX, TITLED, pages, quoted
from scripts.links import CHINESE
from scripts.tables import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def main() -> None:
    """Print the counts."""
    found = count(page for page in pages() if page.parent != REPOSITORY)
    translations = len(fields.translations())
    found["written in Chinese"] += translations
    found["written: all that a person maintains"] += translations
    sys.stdout.write("".join(f"{lines:7,} {kind}\n" for kind, lines in sorted(found.items())))


def count(of: Iterable[Path]) -> Counter[str]:
    """The lines of these pages by kind."""
    found: Counter[str] = Counter()
    for page in of:
        text = page.read_text("utf-8")
        tables = sum(
            one[0].count("\n") - 1 for one in chain(MARKED.finditer(text), MATRIX.finditer(text))
        )
        tables += sum(
            one.count("\n")
            for rows in (fields.ENGLISH, fields.CHINESE)
            for one in rows.findall(text)
        )
        code = files = 0
        if page.name.endswith(CHINESE):
            code = sum(one.count("\n") + 1 for one in FENCED.findall(text))
        else:
            files = sum(
                one[0].count("\n") - 1 for one in TITLED.finditer(text) if quoted(page, one[2])
            )
        language = "Chinese" if page.name.endswith(CHINESE) else "English"
        written = text.count("\n") - tables - code - files
        found["generated: tables"] += tables
        found["generated: code of the Chinese pages"] += code
        found["generated: quoted files"] += files
        found[f"written in {language}"] += written
        found["written: all that a person maintains"] += written
        found["all"] += text.count("\n")
    return found


if __name__ == "__main__":
    main()
