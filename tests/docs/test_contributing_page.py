"""CONTRIBUTING.md and docs/releasing.md name what there is."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.processes import REPOSITORY

from .markdown import read

PAGES: Final = ("CONTRIBUTING.md", "docs/releasing.md")
TARGETS: Final = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.M))


@pytest.mark.parametrize("page", PAGES)
def test_every_target_that_is_named_is_on_the_menu(page: str) -> None:
    named = set(re.findall(r"\bmake ([a-z-]+)(?=[` ]| *#|$)", read(page), re.M))
    assert named <= TARGETS | {"a"}


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_exists(page: str) -> None:
    named = re.findall(r"`((?:delayqueue|tests|store|web|engine)/[\w/.]+)", read(page))
    assert named
    for path in named:
        places = (REPOSITORY / path, REPOSITORY / "delayqueue" / path)
        assert any(place.exists() for place in places), path


def test_every_folder_of_tests_has_its_row() -> None:
    folders = {
        path.name for path in (REPOSITORY / "tests").iterdir() if (path / "__init__.py").exists()
    }
    assert folders - {"compat"} <= set(re.findall(r"`tests/(\w+)`", read("CONTRIBUTING.md")))
