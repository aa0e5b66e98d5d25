"""CONTRIBUTING.md and docs/releasing.md name only what exists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from tests.processes import REPOSITORY

from .markdown import read

if TYPE_CHECKING:
    from pathlib import Path

PAGES: Final = ("CONTRIBUTING.md", "docs/releasing.md")
FORMS: Final = [
    path
    for path in sorted((REPOSITORY / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    if path.name != "config.yml"
]
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


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_an_issue_form_asks_what_can_be_answered(path: Path) -> None:
    form = yaml.safe_load(path.read_text("utf-8"))
    assert {"name", "description", "labels", "body"} == set(form)
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["attributes"]["label"] for field in asked)
    assert len({field["id"] for field in asked}) == len(asked)
    assert any(field.get("validations", {}).get("required") for field in asked)
    for verb in re.findall(r"`delay-queue (\w+)`", str(form)):
        assert f"delay-queue {verb}" in read("docs/cli.md") + read("docs/durability.md")
