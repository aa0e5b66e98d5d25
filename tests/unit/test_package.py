"""What is shipped: nothing that the server needs is left out, and the image's versions are those that fit."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

from tests.processes import REPOSITORY

PROJECT: Final = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
LOCK: Final = (REPOSITORY / "deploy" / "requirements.txt").read_text("utf-8")
LOCKED: Final = dict(re.findall(r"^([\w.-]+)==(\S+)", LOCK, re.MULTILINE))
WANTED: Final = [
    Requirement(text)
    for text in (
        *PROJECT["build-system"]["requires"],
        *PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"]["embedded"],
    )
]


def test_every_file_of_the_package_is_in_the_wheel() -> None:
    package = REPOSITORY / "delayqueue"
    globs = PROJECT["tool"]["setuptools"]["package-data"]["delayqueue"]
    shipped = {path for pattern in globs for path in package.glob(pattern)}
    files = {path for path in package.rglob("*") if path.is_file()}
    code = {path for path in files if path.suffix in {".py", ".pyc"}}
    assert files - code <= shipped


@pytest.mark.parametrize("wanted", WANTED, ids=lambda wanted: wanted.name)
def test_the_image_has_a_version_that_fits(wanted: Requirement) -> None:
    assert wanted.specifier.contains(LOCKED[wanted.name])


def test_every_version_of_the_image_has_its_hashes_and_no_address() -> None:
    for entry in re.split(r"^(?=\w)", LOCK, flags=re.MULTILINE)[1:]:
        assert entry.count("--hash=sha256:") >= 1, entry
    assert "://" not in LOCK


def test_the_image_is_built_from_these_versions() -> None:
    dockerfile = (REPOSITORY / "Dockerfile").read_text("utf-8")
    assert re.search(r'"--require-hashes",.* "-r", "requirements.txt"', dockerfile)
    ignored = (REPOSITORY / ".dockerignore").read_text("utf-8")
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE)
    for path in " ".join(copied).split():
        assert f"!{path}" in ignored, f"{path} does not get into the image"
        assert (REPOSITORY / Path(path)).exists()
