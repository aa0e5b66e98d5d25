"""Writes what the pages repeat, so that a person writes it once: `make generate`; with --check, says what differs.

- The tables of verbs, between marks, from the declarations in the package.
- The tables of fields on the pages of the API. scripts/chinese.json has the Chinese of what the package says of fields,
  settings, endpoints, verbs and methods; what it lacks stays in English.
- The mark at the head of a page that says whether what it describes is stable.
- The files of examples/ that a page quotes: a block whose title is the name of one in the page's folder.
- The code of a Chinese page: the blocks of the English one, in its order, with the server's messages in Chinese.
- The table that compares the servers, on the first pages, and its pictures: from docs/performance.md.
"""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser
from itertools import chain
from typing import TYPE_CHECKING, Final

from delayqueue import errors
from scripts.charts import pictures
from scripts.fields import with_fields
from scripts.links import CHINESE
from scripts.stability import with_mark
from scripts.tables import REPOSITORY, table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN: Final = "run `make generate`"
EXAMPLES: Final = REPOSITORY / "examples"
# where the quoted files are, if not in the folder that is named after the page
FOLDERS: Final = {
    "languages.md": ("python", "node", "go", "java"),
    "php.md": ("php-package",),
    "tutorial.md": ("tutorial", "php"),
}
# their servers speak English on the Chinese page, too
ENGLISH_SERVERS: Final = {"api.md", "cli.md"}

FENCED: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
TITLED: Final = re.compile(
    r'(?<=^```)(\w+ title="([^"]+)"\n).*?(?=^```$)', re.MULTILINE | re.DOTALL
)
MARKED: Final = re.compile(
    r"(?<=<!-- generated: )(.*?)( -->\n)(.*?)(?=<!-- end of what is generated -->)", re.DOTALL
)
# the package faults writes this one
MATRIX: Final = re.compile(r"(?<=<!-- matrix)(.*?)(?=<!-- end of the matrix -->)", re.DOTALL)

IN_CHINESE: Final = {
    json.dumps(text.en): json.dumps(text.zh, ensure_ascii=False)
    for text in (errors.ADDED, errors.DONE, errors.NoSuchJob.default)
}
MESSAGE: Final = re.compile(r'(?<="message":)"[^"]*"')
FOR_ENGLISH: Final = "DELAYQUEUE_LANGUAGE=en "


def main() -> int:
    """Write, or check. Returns the exit status."""
    parser = ArgumentParser(prog="python -m scripts.generate", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if something differs"
    )
    asked = parser.parse_args()
    failed = False
    for file, text in outdated():
        if isinstance(text, str) and not asked.check:
            file.write_text(text, encoding="utf-8")
            says = "written"
        else:
            says = RUN if isinstance(text, str) else str(text)
            failed = True
        sys.stdout.write(f"{file.relative_to(REPOSITORY)}: {says}\n")
    return int(failed)


def outdated() -> Iterator[tuple[Path, str | ValueError]]:
    """Every page and picture that is not as it should be: what it should be, or what a person has to do first."""
    for file, text in chain(pictures().items(), map(_page, pages())):
        if isinstance(text, ValueError) or not file.exists() or file.read_text("utf-8") != text:
            yield file, text


def _page(page: Path) -> tuple[Path, str | ValueError]:
    try:
        return page, generated(page)
    except ValueError as error:
        return page, error


def pages() -> list[Path]:
    """All pages that may have something of it."""
    patterns = ("README*.md", "docs/**/*.md", "examples/README*.md")
    return sorted(page for pattern in patterns for page in REPOSITORY.glob(pattern))


def generated(page: Path) -> str:
    """The page as it should be. Raises ValueError if a person has to change it first; the message says how."""
    text = MARKED.sub(
        lambda found: f"{found[1]}{found[2]}{table(found[1], page, found[3])}",
        with_mark(with_fields(page), page),
    )
    if page.name.endswith(CHINESE):
        return translated(text, page)
    return TITLED.sub(
        lambda found: found[1] + (quoted(page, found[2]) or found[0][len(found[1]) :]), text
    )


def quoted(page: Path, title: str) -> str | None:
    """The file of the examples that a block with this title shows, None = the block is the page's own."""
    for folder in FOLDERS.get(page.name, (page.stem,)):
        file = EXAMPLES / folder / title
        if file.is_file():
            return file.read_text("utf-8")
    return None


def translated(text: str, page: Path) -> str:
    """A Chinese page with the code of its English one. Raises ValueError if it has more or fewer blocks."""
    english = page.with_name(page.name.replace(CHINESE, ".md"))
    blocks = FENCED.findall(generated(english))
    if english.name not in ENGLISH_SERVERS:
        blocks = [
            MESSAGE.sub(lambda found: IN_CHINESE.get(found[0], found[0]), block).replace(
                FOR_ENGLISH, ""
            )
            for block in blocks
        ]
    here = len(FENCED.findall(text))
    if here != len(blocks):
        raise ValueError(
            f"copy the blocks of code of {english.name}: it has {len(blocks)}, this page has {here}"
        )
    rest = iter(blocks)
    return FENCED.sub(lambda _: next(rest), text)


if __name__ == "__main__":
    sys.exit(main())
