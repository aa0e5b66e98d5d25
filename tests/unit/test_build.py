"""A build is told by its version and its commit, whatever it was made of."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from delayqueue import __version__
from delayqueue.config import build as builds
from delayqueue.config.build import build, code_digest


@pytest.fixture(autouse=True)
def asked_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(builds.VARIABLE, raising=False)
    build.cache_clear()
    yield
    build.cache_clear()


def place(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Let the package be in this folder."""
    package = folder / "delayqueue"
    package.mkdir()
    monkeypatch.setattr(builds, "PACKAGE", package)
    return package


def test_a_package_of_no_known_commit_has_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place(monkeypatch, tmp_path)
    assert build() == __version__


def test_a_package_has_its_commit_in_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (place(monkeypatch, tmp_path) / "COMMIT").write_text("0123456789abcdef\n")
    assert build() == f"{__version__}+01234567"


def test_an_image_has_it_in_a_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place(monkeypatch, tmp_path)
    monkeypatch.setenv(builds.VARIABLE, "fedcba9876543210")
    assert build() == f"{__version__}+fedcba98"


def test_a_checkout_asks_git_and_says_if_it_was_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = place(monkeypatch, tmp_path) / "a.py"
    module.write_text("1")

    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        command = ["git", "-C", str(tmp_path), *who, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message=a")
    commit = git("rev-parse", "HEAD")[:8]
    assert build() == f"{__version__}+{commit}"
    module.write_text("2")
    build.cache_clear()
    assert build() == f"{__version__}+{commit}.dirty"


def test_a_git_that_fails_keeps_nothing_from_starting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place(monkeypatch, tmp_path)
    (tmp_path / ".git").write_text("nonsense")
    assert build() == __version__
    monkeypatch.setenv("PATH", "")
    build.cache_clear()
    assert build() == __version__


def test_other_code_has_another_digest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = place(monkeypatch, tmp_path)
    (package / "config").mkdir()
    module = package / "config" / "a.py"
    module.write_text("1")
    digest = code_digest()
    (package / "a.pyc").write_text("Python's own")
    assert code_digest() == digest
    module.write_text("2")
    assert code_digest() != digest
