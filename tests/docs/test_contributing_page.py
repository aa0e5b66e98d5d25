"""CONTRIBUTING.md, docs/releasing.md and, of the menu, the READMEs name only what exists."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.processes import REPOSITORY

from .markdown import read

PAGES: Final = ("CONTRIBUTING.md", "docs/releasing.md")
FORMS: Final = [
    path
    for path in sorted((REPOSITORY / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    if path.name != "config.yml"
]
BUILT: Final = {"dist/"}
PACKAGE: Final = REPOSITORY / "delayqueue"
# what paths are relative to: the repository, its package, and the page at /admin
ROOTS: Final = (REPOSITORY, PACKAGE, PACKAGE / "web/static/admin")
# a path and, behind a colon, a name in that file
NAMED: Final = re.compile(
    r"`(\w[\w/.-]*(?:/|\.(?:py|lua|js|json|md|txt|toml|conf|yml)))(?:`|: ?([\w.]*)`)"
)
TESTS: Final = re.compile(r"(?<=[` ])tests/[\w/.]+\b")  # in commands, too
TARGETS: Final = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.M))


@pytest.mark.parametrize("page", [*PAGES, "README.md", "README.zh-CN.md"])
def test_every_target_that_is_named_is_on_the_menu(page: str) -> None:
    named = set(re.findall(r"\bmake ([a-z-]+)(?=[` ]| *#|$)", read(page), re.M))
    assert named
    assert named <= TARGETS | {"a"}


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_exists(page: str) -> None:
    assert list(named_files(read(page)))
    assert missing(read(page)) == []


@pytest.mark.parametrize(
    "text",
    [
        "see `engine/books.py`",
        "see `tests/store/`, and `delayqueue/store/conftest.py`",  # a test has such a name
        "see `engine/jobs.py: Jobs.finnish`",
        "    .venv/bin/python -m pytest tests/store/test_popp.py -k ghosts",
        "| `tests/shop` | servers |",
    ],
)
def test_a_file_that_is_not_there_is_found(text: str) -> None:
    assert len(missing(text)) == 1


def missing(text: str) -> list[str]:
    """The files, folders and names in them that a text speaks of, and that are nowhere."""
    return [
        f"{path} {name}"
        for path, name in named_files(text)
        if path not in BUILT
        and not any(
            (root / path).exists() and (not name or name in (root / path).read_text("utf-8"))
            for root in ROOTS
        )
    ]


def named_files(text: str) -> Iterator[tuple[str, str]]:
    """Each file or folder that a text names, and what is said to be in it."""
    for path, name in NAMED.findall(text):
        yield path, name.rpartition(".")[2]
    for path in TESTS.findall(text):
        yield path, ""


def test_the_table_of_the_code_has_each_folder_and_module() -> None:
    page = read("CONTRIBUTING.md")
    (table,) = re.findall(r"^\| Folder \| Contents \|\n(.*?)\n\n", page, re.M | re.DOTALL)
    *rows, (beside, shared) = [row.strip("| ").split(" | ", 1) for row in table.splitlines()[1:]]
    assert beside == "beside the folders"
    folders = {path.parent for path in PACKAGE.glob("*/__init__.py")}
    named = {PACKAGE / one for row, _ in rows for one in re.findall(r"`([\w/]+)/`", row)}
    assert {path for path in named if path.parent == PACKAGE} == folders
    modules = {path.stem for path in PACKAGE.glob("[a-z]*.py")}
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
