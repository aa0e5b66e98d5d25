"""Writes what the pages repeat, so that a person writes it once: `make generate`; with --check, says what differs.

- The tables of verbs, between marks, from the declarations in the package.
- The files of examples/ that a page quotes: a block whose title is the name of one in the page's folder.
- The code of a Chinese page: the blocks of the English one, in its order, with the server's messages in Chinese.
- The table that compares the servers, on the first pages, and its pictures: from docs/performance.md.

With --lines, it counts the lines of docs/ by who writes them.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from inspect import Parameter, cleandoc, signature
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from delayqueue import errors
from delayqueue.cli.remote import REMOTE
from delayqueue.client.calls import verb
from delayqueue.client.verbs import Verbs
from delayqueue.config.config import OPTIONS
from delayqueue.domain.access import Role
from delayqueue.web.endpoints import ENDPOINTS
from scripts.charts import pictures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from delayqueue.cli.subcommand import Subcommand
    from delayqueue.web.endpoint import Endpoint

REPOSITORY: Final = Path(__file__).parents[1]
CHINESE: Final = ".zh-CN.md"
EXAMPLES: Final = "examples"
# where the quoted files are, if not in the folder that is named after the page
FOLDERS: Final = {"php.md": ("php-cpm",), "tutorial.md": ("tutorial", "php")}
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
HEADING: Final = re.compile(r"^### (.*)$", re.MULTILINE)

IN_CHINESE: Final = {
    json.dumps(text.en): json.dumps(text.zh, ensure_ascii=False)
    for text in (errors.ADDED, errors.DONE, errors.NoSuchJob.default)
}
MESSAGE: Final = re.compile(r'(?<="message":)"[^"]*"')
FOR_ENGLISH: Final = "DELAYQUEUE_LANGUAGE=en "


def main() -> int:
    """Write, check or count, as asked."""
    if "--lines" in sys.argv:
        say(f"{lines:7,} {kind}" for kind, lines in sorted(count(pages()).items()))
        return 0
    differing = [
        file for file, text in files() if not file.exists() or file.read_text("utf-8") != text
    ]
    if "--check" in sys.argv:
        say(f"{file.relative_to(REPOSITORY)}: run `make generate`" for file in differing)
        return 1 if differing else 0
    for file, text in files():  # one after the other: Chinese pages are made from the English ones
        if file in differing:
            file.write_text(text, encoding="utf-8")
            say([f"wrote {file.relative_to(REPOSITORY)}"])
    return 0


def files() -> Iterator[tuple[Path, str]]:
    """Every page and picture, and what it should be."""
    yield from pictures().items()
    for page in pages():
        yield page, generated(page)


def say(lines: Iterable[str]) -> None:
    """Print them."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def pages() -> list[Path]:
    """All pages, those first from which others are made."""
    found = [*REPOSITORY.glob("README*.md"), *REPOSITORY.glob("docs/**/*.md")]
    return sorted(found, key=lambda page: (page.name.endswith(CHINESE), page))


def generated(page: Path) -> str:
    """The page as it should be."""
    text = MARKED.sub(
        lambda found: f"{found[1]}{found[2]}{table(found[1], page, found[3])}",
        page.read_text("utf-8"),
    )
    if page.name.endswith(CHINESE):
        return translated(text, page)
    return TITLED.sub(
        lambda found: found[1] + (quoted(page, found[2]) or found[0][len(found[1]) :]), text
    )


def quoted(page: Path, title: str) -> str | None:
    """The file of the examples that a block with this title shows, None = the block is the page's own."""
    for folder in FOLDERS.get(page.name, (page.stem,)):
        file = REPOSITORY / EXAMPLES / folder / title
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
        raise ValueError(f"{page}: has {here} blocks of code, {english.name} has {len(blocks)}")
    rest = iter(blocks)
    return FENCED.sub(lambda _: next(rest), text)


def table(name: str, page: Path, before: str) -> str:
    """The lines between the marks of this name, instead of those before. Raises KeyError if there is no such table."""
    if name == "settings":
        return "".join(f"{line}\n" for line in settings(before))
    return "".join(f"{line}\n" for line in TABLES[name](page))


def settings(before: str) -> Iterator[str]:
    """The same settings in the same order, as they are declared now."""
    yield "| Key | Default | |"
    yield "| --- | --- | --- |"
    for key in re.findall(r"^\| `([\w.]+)` \|", before, re.MULTILINE):
        option = OPTIONS[key]
        default = f"`{option.default}` {option.unit}".strip() if option.default else ""
        yield f"| `{key}` | {default} | {option.help} |"


def endpoints(page: Path) -> Iterator[str]:
    """Each endpoint, with the roles that may call it; on the English page also what it does."""
    chinese = page.name.endswith(CHINESE)
    yield "| 接口 | 角色 |" if chinese else "| Endpoint | | Role |"
    yield "| --- | --- |" if chinese else "| --- | --- | --- |"
    known = anchors(page)
    for one in ENDPOINTS:
        summary = "" if chinese else f"{one.summary} | "
        allowed = roles(one, "人人可用" if chinese else "open to all")
        yield f"| [{one.path}](#{known[one.path]}) | {summary}{allowed} |"


def anchors(api_page: Path) -> dict[str, str]:
    """The section of each endpoint, by its path."""
    return {
        path: re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")
        for heading in HEADING.findall(api_page.read_text("utf-8"))
        for path in re.findall(r"\b(?:GET|POST) (/[\w.-]+)", heading)
    }


def roles(one: Endpoint, everybody: str) -> str:
    """The roles that may call an endpoint."""
    if one.roles is None:
        return everybody
    return ", ".join(role for role in Role if role in one.roles)


def commands(page: Path) -> Iterator[str]:
    """The verbs of the command line: what each does; on the Chinese page, the endpoint that explains it."""
    chinese = page.name.endswith(CHINESE)
    yield "| 命令 | 接口 |" if chinese else "| Verb | |"
    yield "| --- | --- |"
    known = anchors(page.with_name(f"api{CHINESE}")) if chinese else {}
    for one in chain(*REMOTE.values()):
        anchor = known.get(f"/{one.name}")
        link = f"[/{one.name}](api{CHINESE}#{anchor})" if anchor else ""
        yield f"| `{usage(one)}` | {link if chinese else one.help} |"


def usage(command: Subcommand) -> str:
    """The verb and its arguments without the options, as a usage line shows them."""
    forms = {None: " {}", "?": " [{}]", "+": " {}...", "*": " [{}...]"}
    return command.name + "".join(
        forms[one.options.get("nargs")].format(one.options["metavar"])
        for one in command.arguments
        if not one.flags[0].startswith("-")
    )


def methods(_page: Path) -> Iterator[str]:
    """The methods of the Python clients: the first lines of their docstrings, and what they return."""
    yield "| Method | | Returns |"
    yield "| --- | --- | --- |"
    for name, one in chain.from_iterable(vars(family).items() for family in Verbs.__mro__):
        if isinstance(one, verb):
            summary = cleandoc(one.build.__doc__ or "").partition("\n")[0]
            returns = one.build.__annotations__["return"].removeprefix("Call[").removesuffix("]")
            called = f"{name}({', '.join(arguments(one.build))})"
            yield f"| `{called}` | {summary} | `{returns.replace('|', 'or')}` |"


def arguments(method: Callable[..., object]) -> Iterator[str]:
    """Its arguments: `name=` if it is named or may be left out, with its default if that is a number."""
    for one in [*signature(method).parameters.values()][1:]:
        if one.kind is Parameter.VAR_POSITIONAL:
            yield f"*{one.name}"
        elif isinstance(one.default, int):
            yield f"{one.name}={one.default}"
        else:
            needed = one.default is Parameter.empty and one.kind is not Parameter.KEYWORD_ONLY
            yield one.name if needed else f"{one.name}="


def comparison(page: Path) -> Iterator[str]:
    """The table that compares the servers, with its links from where this page is."""
    measured = f"performance{CHINESE if page.name.endswith(CHINESE) else '.md'}"
    text = (REPOSITORY / "docs" / measured).read_text("utf-8")
    found = re.search(r"^## .*\n\n.*\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    folder = "docs/" if page.parent == REPOSITORY else ""
    yield from re.sub(r"(?<=\]\()(?!http)", folder, found[1] if found else "").splitlines()


TABLES: Final[dict[str, Callable[[Path], Iterator[str]]]] = {
    "endpoints": endpoints,
    "commands": commands,
    "comparison": comparison,
    "methods": methods,
}


def count(of: Iterable[Path]) -> Counter[str]:
    """The lines of docs/ by kind."""
    found: Counter[str] = Counter()
    for page in of:
        if page.parent == REPOSITORY:
            continue
        text = page.read_text("utf-8")
        chinese = page.name.endswith(CHINESE)
        tables = sum(
            one[0].count("\n") for one in chain(MARKED.finditer(text), MATRIX.finditer(text))
        )
        code = sum(one.count("\n") + 1 for one in FENCED.findall(text)) if chinese else 0
        files = 0
        if not chinese:
            files = sum(
                one[0].count("\n") - 1 for one in TITLED.finditer(text) if quoted(page, one[2])
            )
        written = text.count("\n") - tables - code - files
        found["generated: tables"] += tables
        found["generated: code of the Chinese pages"] += code
        found["generated: quoted files"] += files
        found["written in Chinese" if chinese else "written in English"] += written
        found["written: all that a person maintains"] += written
        found["all"] += text.count("\n")
    return found


if __name__ == "__main__":
    sys.exit(main())
