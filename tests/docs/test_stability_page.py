"""What is stable: declared at each endpoint, and on each page."""

from pathlib import Path

import pytest

from delayqueue.web.endpoint import Stability
from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.web.openapi import document
from delayqueue.web.pages import page as docs_page
from scripts.links import CHINESE
from scripts.stability import MARKS, with_mark
from tests.processes import REPOSITORY

from .markdown import read

PAGES = {path.name.removesuffix(".md") for path in (REPOSITORY / "docs").rglob("*.md")}


def test_the_stable_endpoints_are_those_that_the_page_names() -> None:
    stable = {one.path for one in ENDPOINTS if one.stability is Stability.STABLE}
    rows = [row for row in read("docs/stability.md").splitlines() if row.startswith("| ")]
    named = {word for row in rows for word in row.split(" | ")[0].split("`") if word[:1] == "/"}
    assert named == stable


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: one.path)
def test_every_operation_says_how_stable_it_is(endpoint) -> None:  # type: ignore[no-untyped-def]
    for operation in document(ENDPOINTS)["paths"][endpoint.path].values():
        assert operation["x-stability"] == endpoint.stability


def test_the_page_for_people_shows_it() -> None:
    shown = docs_page(document(ENDPOINTS))
    for stability in Stability:
        of_it = sum(one.stability is stability for one in ENDPOINTS)
        assert shown.count(f"<p>Stability: {stability}.</p>") == of_it > 0


def test_every_mark_is_of_a_page() -> None:
    assert set(MARKS) <= PAGES


def test_a_mark_by_hand_is_undone(tmp_path: Path) -> None:
    for name in ("config.md", f"config{CHINESE}"):
        text = read(f"docs/{name}")
        mark = next(line for line in text.splitlines() if line.startswith("> **"))
        assert with_mark(text.replace(mark, mark.replace("**", "**!", 1)), tmp_path / name) == text
        assert with_mark(text.replace(f"{mark}\n\n", ""), tmp_path / name) == text
