"""docs/config.md and other pages name settings as they are."""

import re
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from delayqueue.config.config import OPTIONS
from delayqueue.config.loading import NO_SETTINGS, load
from delayqueue.config.reloaded import RELOADED
from tests.processes import REPOSITORY

from .markdown import blocks, read

PAGE: Final = read("docs/config.md")
# pages that show the files of other programs in that language
OTHERS: Final = ("laravel", "php", "systemd")
PAGES: Final = [
    str(page.relative_to(REPOSITORY))
    for page in REPOSITORY.glob("docs/**/*.md")
    if not page.name.startswith(OTHERS)
]


def test_what_a_reload_changes_is_named() -> None:
    section = PAGE.partition("## Reload\n")[2].partition("\n## ")[0]
    named = {
        key for line in re.findall(r"^- `.*", section, re.M) for key in re.findall(r"`(\w+)`", line)
    }
    assert named == RELOADED


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(read(page), "ini")])
def test_the_settings_that_a_page_shows_are_understood(page: str, tmp_path: Path) -> None:
    for number, block in enumerate(blocks(read(page), "ini")):
        path = tmp_path / f"{number}.conf"
        path.write_text(block.text, encoding="utf-8")
        assert load(path, {}) != load(None, {})


def test_every_variable_that_a_page_names_is_one() -> None:
    pages = [REPOSITORY.glob(pattern) for pattern in ("*.md", "docs/**/*.md", "deploy/**/*.yaml")]
    named = {
        name
        for page in chain(*pages)
        for name in re.findall(r"DELAYQUEUE_\w*[A-Z]", page.read_text("utf-8"))
    }
    assert named <= {option.variable for option in OPTIONS.values()} | NO_SETTINGS
