"""Figures on other pages are those of docs/performance.md and bench/MEASURED.md, which have the measurements."""

import re
from typing import Final

import pytest

from .markdown import read
from .test_metrics_page import ALERT, RULES

MEASURED: Final = read("docs/performance.md")


def rows(page: str, width: int) -> list[list[str]]:
    """The rows of all tables with this many columns, without their emphasis."""
    found = re.findall(r"^\| (.*) \|$", page.replace("*", "").replace("`", ""), re.MULTILINE)
    return [cells for row in found if len(cells := row.split(" | ")) == width]


@pytest.mark.parametrize("page", ["docs/index.md", "docs/index.zh-CN.md"])
def test_the_figures_of_the_front_page_were_measured(page: str) -> None:
    promises = read(page).partition('<div class="promises"')[2].partition("</div>")[0]
    said = set(re.findall(r"\d[\d,.]*\d|\d", re.sub(r"\(.*?\)", "", promises)))
    assert len(said) > 8
    assert said <= {*re.findall(r"\d[\d,.]*\d|\d", MEASURED), str(len(ALERT.findall(RULES)))}


def test_the_memory_in_sizing_is_what_was_measured() -> None:
    """The bytes of ten million jobs."""
    [row] = [row for row in rows(MEASURED, 6) if row[0] == "200 bytes"]
    [said] = re.findall(r"bodies of 200 bytes\nare (.*?) or (.*?) GB", read("docs/howto/sizing.md"))
    assert said == tuple(f"{int(row[column]) / 100:.1f}" for column in (2, 4))


def test_the_memory_beside_the_original_is_what_was_measured() -> None:
    """The smallest and the largest measured figure of each scheduler."""
    measured = [
        row[-4:]
        for row in [*rows(MEASURED, 6), *rows(read("bench/MEASURED.md"), 7)]
        if "bytes" in f"{row[0]} {row[1]}"
    ]
    ranges = [tuple(sorted(row[column] for row in measured)) for column in (1, 3)]
    said = re.findall(r"(0\.\d\d) to (0\.\d\d) times", read("CHANGELOG.md"))
    assert said == [(found[0], found[-1]) for found in ranges]
