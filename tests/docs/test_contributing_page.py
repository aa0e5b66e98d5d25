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
BUILT: Final = {"dist/"}
TARGETS: Final = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.M))


@pytest.mark.parametrize("page", PAGES)
def test_every_target_that_is_named_is_on_the_menu(page: str) -> None:
    named = set(re.findall(r"\bmake ([a-z-]+)(?=[` ]| *#|$)", read(page), re.M))
    assert named <= TARGETS | {"a"}


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_exists(page: str) -> None:
    named = re.findall(
        r"`(\w[\w/.-]*(?:/|\.(?:py|lua|js|json|md|txt|toml|conf|yml)))(?=[`:])", read(page)
    )
    assert named
    ends = [f"/{path}" for path in files_and_folders()]
    for path in set(named) - BUILT:
        assert any(end.endswith(f"/{path}") for end in ends), path


def files_and_folders() -> list[str]:
    """All that is in the repository; a folder ends with a slash."""
    tops = [top for top in REPOSITORY.iterdir() if top.name not in {".git", ".venv", "site"}]
    found = [path for top in tops for path in [top, *top.rglob("*")]]
    return [f"{path.relative_to(REPOSITORY).as_posix()}{'/' * path.is_dir()}" for path in found]


def test_the_table_of_the_code_has_each_folder_and_module() -> None:
    page = read("CONTRIBUTING.md")
    (table,) = re.findall(r"^\| Folder \| Contents \|\n(.*?)\n\n", page, re.M | re.DOTALL)
    *rows, (beside, shared) = [row.strip("| ").split(" | ", 1) for row in table.splitlines()[1:]]
    assert beside == "beside the folders"
    package = REPOSITORY / "delayqueue"
    folders = {path.parent for path in package.glob("*/__init__.py")}
    named = {package / one for row, _ in rows for one in re.findall(r"`([\w/]+)/`", row)}
    assert {path for path in named if path.parent == package} == folders
    modules = {path.stem for path in package.glob("[a-z]*.py")}
    assert set(shared.partition(": ")[2].split(", ")) == modules


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
