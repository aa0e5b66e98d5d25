"""A page and its Chinese twin say the same: section by section the same tables, figures and links.

Their blocks of code are written by `make generate`.
"""

import posixpath
import re
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import delayqueue
from scripts.links import CHINESE, in_chinese
from tests.processes import REPOSITORY

from .markdown import read
from .test_links import PAGES as ALL

TWINS: Final = [str(page) for page in ALL if page.name.endswith(CHINESE)]
FENCED: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
# a table that has other columns in Chinese, and those that scripts/chinese.json translates
GENERATED: Final = re.compile(
    r"<!-- matrix.*?<!-- end of .*? -->"
    r"|^\| (?:Field \| Type|字段 \| 类型) \| \|\n(?:\|.*\n)+",
    re.DOTALL | re.MULTILINE,
)
HEADING: Final = re.compile(r"^(#+) ", re.MULTILINE)
CODE: Final = re.compile(r"`[^`\n]+`")
LINK: Final = re.compile(r"\]\(([^)]*)\)")
FIGURE: Final = re.compile(r"(\d[\d,.]*\d|\d) ?(million|百万|千万|万|亿)?")
UNITS: Final = {"million": 10**6, "万": 10**4, "百万": 10**6, "千万": 10**7, "亿": 10**8}
HALF_WIDTH: Final = re.compile(r"[一-鿿] ?[,;:?!()]|[,;:?!()] ?[一-鿿]|[一-鿿]\.(?!\w)")
# the texts of the server and its page
PACKAGE: Final = Path(delayqueue.__file__).parent
SOURCES: Final = [
    path
    for path in PACKAGE.rglob("*")
    if path.suffix in {".py", ".js", ".html"} and "vendor" not in path.relative_to(PACKAGE).parts
]
FILLED_IN: Final = re.compile(r"\$?\{[^{}\s]*\}")


class Section(NamedTuple):
    """The parts of a section that are the same in every language."""

    level: str
    rows: list[set[str]]  # of tables
    words: set[str]  # pieces of code, and figures
    links: set[str]


def half_width(chinese_text: str) -> list[str]:
    """The half-width marks between Chinese words."""
    return HALF_WIDTH.findall(chinese_text)


def english(twin: str) -> str:
    """The English page of a Chinese one."""
    return twin.replace(CHINESE, ".md")


def prose(page: str) -> str:
    """A page without its code blocks, the tables that programs write, and the link to its twin."""
    ours = GENERATED.sub("", FENCED.sub("", read(page)))
    return re.sub(r"^\[.*\]\(.*\)$", "", ours, count=1, flags=re.MULTILINE)


def sections(page: str) -> list[Section]:
    _, *parts = HEADING.split(prose(page))
    return [section(page, *pair) for pair in zip(parts[::2], parts[1::2], strict=True)]


def section(page: str, level: str, text: str) -> Section:
    links = {target(page, link) for link in LINK.findall(text)}
    rows = re.findall(r"^ *\|.*$", text, re.MULTILINE)
    return Section(level, [words(row) for row in rows], words(text), links)


def target(page: str, link: str) -> str:
    """Where a link leads, on the Chinese page if it is on the English one."""
    path, hash_sign, anchor = in_chinese(REPOSITORY / page, link).partition("#")
    if path.startswith("http"):
        return link
    here = page if page.endswith(CHINESE) else page.replace(".md", CHINESE)
    file = posixpath.join(posixpath.dirname(page), path) if path else here
    return f"{posixpath.normpath(file)}{hash_sign}{anchor}"


def words(text: str) -> set[str]:
    """The pieces of code and the figures."""
    plain = CODE.sub("", LINK.sub("]", text))
    return {*CODE.findall(text), *(figure(*found) for found in FIGURE.findall(plain))}


def figure(digits: str, unit: str) -> str:
    plain = digits.replace(",", "")
    return f"{float(plain) * UNITS[unit]:.0f}" if unit else plain


@pytest.mark.parametrize("twin", TWINS)
def test_every_section_says_the_same(twin: str) -> None:
    for here, there in zip(sections(twin), sections(english(twin)), strict=True):
        assert here == there


@pytest.mark.parametrize("twin", TWINS)
def test_each_links_to_the_other(twin: str) -> None:
    name = twin.rpartition("/")[2]
    assert f"\n[English]({english(name)})\n" in read(twin)
    assert re.search(rf"^\[中文.*\]\({re.escape(name)}\)$", read(english(twin)), re.MULTILINE)


@pytest.mark.parametrize("twin", TWINS)
def test_the_marks_between_chinese_words_are_full_width(twin: str) -> None:
    assert half_width(CODE.sub("", LINK.sub("]", prose(twin)))) == []


def test_the_marks_of_messages_and_of_the_page_are_full_width() -> None:
    found = {path: half_width(FILLED_IN.sub("", path.read_text())) for path in SOURCES}
    assert {path: marks for path, marks in found.items() if marks} == {}
