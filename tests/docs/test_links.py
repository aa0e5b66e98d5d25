"""No page has a dead link."""

import re
from pathlib import Path
from typing import Final

import pytest

from scripts.links import anchors
from tests.processes import REPOSITORY

PAGES: Final = [
    path.relative_to(REPOSITORY)
    for pattern in (
        "*.md",
        "bench/*.md",
        "faults/*.md",
        "docs/**/*.md",
        "examples/**/*.md",
        "clients/**/*.md",
    )
    for path in sorted(REPOSITORY.glob(pattern))
]
LINK: Final = re.compile(r"\]\((?!https?://)([^)#]*)(?:#([^)]*))?\)")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    for path, anchor in LINK.findall(text):
        target = (REPOSITORY / page).parent / path if path else REPOSITORY / page
        assert target.exists(), path
        if anchor:
            assert anchor in anchors(target), f"{path}#{anchor}"
