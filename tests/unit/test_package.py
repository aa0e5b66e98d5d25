"""What is shipped: nothing that the server needs is missing, and the versions in the image fit."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from tests.processes import REPOSITORY

PROJECT: Final = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
EXTRAS: Final = PROJECT["project"]["optional-dependencies"]
# what `make` installs, and of which extras it is
LOCKS: Final = {
    "requirements": ("embedded", "otel"),
    "requirements-quick": ("quick",),
    "requirements-test": ("test",),
    "requirements-lint": ("lint",),
    "requirements-docs": ("docs",),
}


def wanted(extras: Iterable[str]) -> Iterator[str]:
    """The requirements of these extras, and of the extras that they name."""
    for each in chain.from_iterable(EXTRAS[extra] for extra in extras):
        requirement = Requirement(each)
        if requirement.name == PROJECT["project"]["name"]:
            yield from wanted(sorted(requirement.extras))
        else:
            yield each


TEXTS: Final = {name: (REPOSITORY / "deploy" / f"{name}.txt").read_text("utf-8") for name in LOCKS}
LOCKED: Final = {
    name: dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)) for name, text in TEXTS.items()
}
WANTED: Final = [
    (lock, each)
    for lock, extras in LOCKS.items()
    for each in [*PROJECT["build-system"]["requires"], *wanted(extras)]
]


def test_every_file_of_the_package_is_in_the_wheel() -> None:
    package = REPOSITORY / "delayqueue"
    globs = PROJECT["tool"]["setuptools"]["package-data"]["delayqueue"]
    shipped = {path for pattern in globs for path in package.glob(pattern)}
    files = {path for path in package.rglob("*") if path.is_file()}
    code = {path for path in files if path.suffix in {".py", ".pyc"}}
    assert files - code <= shipped


def test_the_package_index_does_not_take_its_name_for_that_of_another_project() -> None:
    """`delayqueue` is taken; letter case and separators make no difference there."""
    name = PROJECT["project"]["name"]
    assert re.sub(r"[-_.]", "", name).lower() != "delayqueue"
    assert f"`{name}`" in (REPOSITORY / "docs" / "releasing.md").read_text("utf-8")


@pytest.mark.parametrize(("lock", "each"), WANTED)
def test_a_version_that_fits_is_locked(lock: str, each: str) -> None:
    requirement = Requirement(each)
    locked = LOCKED[lock][re.sub(r"[_.]", "-", requirement.name).lower()]
    assert requirement.specifier.contains(locked)


@pytest.mark.parametrize("lock", LOCKS)
def test_what_is_tried_is_what_is_shipped(lock: str) -> None:
    assert LOCKED[lock].items() <= LOCKED["requirements-test"].items()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_version_has_its_hashes_and_no_address(lock: str) -> None:
    for entry in re.split(r"^(?=\w)", TEXTS[lock], flags=re.MULTILINE)[1:]:
        assert entry.count("--hash=sha256:") >= 1, entry
    assert "://" not in TEXTS[lock]


def test_the_image_is_built_from_these_versions() -> None:
    dockerfile = (REPOSITORY / "Dockerfile").read_text("utf-8")
    assert re.search(r'"--require-hashes",.* "-r", "requirements.txt"', dockerfile)
    ignored = (REPOSITORY / ".dockerignore").read_text("utf-8")
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE)
    for path in " ".join(copied).split():
        assert f"!{path}" in ignored, f"{path} does not get into the image"
        assert (REPOSITORY / Path(path)).exists()
