"""docs/config.md and other pages name settings as they are."""

import re
from itertools import chain
from typing import Final

from delayqueue.config.config import OPTIONS
from delayqueue.config.loading import NO_SETTINGS
from delayqueue.config.reloaded import RELOADED
from tests.processes import REPOSITORY

from .markdown import read

PAGE: Final = read("docs/config.md")


def test_what_a_reload_changes_is_named() -> None:
    section = PAGE.partition("## Reload\n")[2].partition("\n## ")[0]
    named = {
        key for line in re.findall(r"^- `.*", section, re.M) for key in re.findall(r"`(\w+)`", line)
    }
    assert named == RELOADED


def test_every_variable_that_a_page_names_is_one() -> None:
    pages = [REPOSITORY.glob(pattern) for pattern in ("*.md", "docs/**/*.md", "deploy/**/*.yaml")]
    named = {
        name
        for page in chain(*pages)
        for name in re.findall(r"DELAYQUEUE_\w*[A-Z]", page.read_text("utf-8"))
    }
    assert named <= {option.variable for option in OPTIONS.values()} | NO_SETTINGS
