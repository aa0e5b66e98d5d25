"""Commands on pages work when pasted: the program is found, and the system's Python is left alone."""

import re
from typing import Final

import pytest

from tests.processes import REPOSITORY

from .markdown import blocks

PAGES: Final = {
    str(path.relative_to(REPOSITORY)): path.read_text("utf-8")
    for pattern in ("*.md", "docs/**/*.md", "examples/*.md", "deploy/**/*.md")
    for path in REPOSITORY.glob(pattern)
}
BARE: Final = re.compile(r"^\s*(?:\$ )?(?:.*[|&(] ?)?delay-queue (?!\|)", re.MULTILINE)
FOUND: Final = re.compile(r"\.venv/bin/activate|README(?:\.zh-CN)?\.md#(?:start|启动)")
INSTALLS: Final = re.compile(r"(\S*)\bpipx? install\b")


def typed(page: str) -> str:
    """All commands of a page, also in lists."""
    flush = re.sub(r"^ +", "", PAGES[page], flags=re.MULTILINE)
    return "\n".join(block.text for block in blocks(flush, "sh", "console"))


@pytest.mark.parametrize("page", [page for page in PAGES if BARE.search(typed(page))])
def test_a_page_that_calls_the_program_says_where_it_is(page: str) -> None:
    assert FOUND.search(PAGES[page])


@pytest.mark.parametrize("page", PAGES)
def test_nobody_is_told_to_install_into_the_python_of_the_system(page: str) -> None:
    """Debian's pip refuses. pipx makes an environment; the pip of an environment is named with its path."""
    named = INSTALLS.findall(PAGES[page])
    pipx = PAGES[page].count("pipx install")
    assert len([prefix for prefix in named if prefix.strip("`'\"") == ""]) == pipx


def test_the_program_is_called_on_some_pages() -> None:
    assert BARE.search(typed("docs/cli.md"))
    assert not BARE.search("/opt/delay-queue/bin/delay-queue -c x\ncd delay-queue\n")
