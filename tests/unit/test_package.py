"""What is shipped: nothing that the server needs is missing, and the versions in the image fit."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from tests.processes import REPOSITORY

PROJECT: Final = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
EXTRAS: Final = PROJECT["project"]["optional-dependencies"]
SHIPPED: Final = [
    *PROJECT["build-system"]["requires"],
    *PROJECT["project"]["dependencies"],
    *EXTRAS["server"],
    *(each for each in EXTRAS["embedded"] if not each.startswith(PROJECT["project"]["name"])),
]
TRIED: Final = [*SHIPPED, *EXTRAS["test"], *EXTRAS["lint"], *EXTRAS["docs"]]
LOCKS: Final = {
    name: (REPOSITORY / "deploy" / f"{name}.txt").read_text("utf-8")
    for name in ("requirements", "requirements-test")
}
LOCKED: Final = {
    name: dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)) for name, text in LOCKS.items()
}
WANTED: Final = [("requirements", each) for each in SHIPPED] + [
    ("requirements-test", each) for each in TRIED
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


@pytest.mark.parametrize(("lock", "wanted"), WANTED)
def test_a_version_that_fits_is_locked(lock: str, wanted: str) -> None:
    requirement = Requirement(wanted)
    locked = LOCKED[lock][re.sub(r"[_.]", "-", requirement.name).lower()]
    assert requirement.specifier.contains(locked)


def test_what_is_tried_is_what_is_shipped() -> None:
    assert LOCKED["requirements"].items() <= LOCKED["requirements-test"].items()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_version_has_its_hashes_and_no_address(lock: str) -> None:
    for entry in re.split(r"^(?=\w)", LOCKS[lock], flags=re.MULTILINE)[1:]:
        assert entry.count("--hash=sha256:") >= 1, entry
    assert "://" not in LOCKS[lock]


def test_the_image_is_built_from_these_versions() -> None:
    dockerfile = (REPOSITORY / "Dockerfile").read_text("utf-8")
    assert re.search(r'"--require-hashes",.* "-r", "requirements.txt"', dockerfile)
    ignored = (REPOSITORY / ".dockerignore").read_text("utf-8")
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE)
    for path in " ".join(copied).split():
        assert f"!{path}" in ignored, f"{path} does not get into the image"
        assert (REPOSITORY / Path(path)).exists()
