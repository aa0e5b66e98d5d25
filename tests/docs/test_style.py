"""The style check of `make lint`: it finds each phrase, and there are none in our prose."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.processes import REPOSITORY

PHRASES: Final = [
    line.split("->") for line in (REPOSITORY / "scripts" / "phrases.txt").read_text().splitlines()
]
CODESPELL: Final = Path(sys.executable).with_name("codespell")


def style(*paths: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [REPOSITORY / "scripts" / "style", CODESPELL, *paths],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


def prose() -> list[str]:
    """The paths that `make lint` checks."""
    makefile = (REPOSITORY / "Makefile").read_text()
    found = re.search(r"^PROSE := (.*)$", makefile, re.MULTILINE)
    assert found
    assert "scripts/style $(BIN)/codespell $(PROSE)" in makefile
    return found[1].split()


def test_what_is_read_as_prose_has_none_of_the_phrases() -> None:
    checked = style(*prose())
    assert (checked.stdout, checked.returncode) == ("", 0)


@pytest.mark.parametrize("name", ["page.md", "module.py", "script.lua"])
def test_each_phrase_is_found_and_the_better_one_is_said(tmp_path: Path, name: str) -> None:
    sentences = tmp_path / name
    sentences.write_text("".join(f"# The job, {phrase} (it).\n" for phrase, _ in PHRASES))
    checked = style(sentences)
    assert checked.returncode != 0
    found = [line.split(": ", 1)[1] for line in checked.stdout.splitlines()]
    assert found == [f"{phrase} ==> {_shown(better)}" for phrase, better in PHRASES]


def _shown(better: str) -> str:
    return better.replace(", ", "  | ") if "," in better else better


def test_a_phrase_within_words_is_none(tmp_path: Path) -> None:
    sentences = tmp_path / "page.md"
    sentences.write_text("A shallow canewood dish, so manyfold.\n")
    assert style(sentences).returncode == 0


def test_a_phrase_is_found_at_the_beginning_of_a_sentence(tmp_path: Path) -> None:
    sentences = tmp_path / "page.md"
    sentences.write_text("## What becomes of a job\n")
    assert "What becomes of ==> What happens to" in style(sentences).stdout
