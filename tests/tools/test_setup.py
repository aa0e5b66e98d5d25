"""On a machine that lacks something, scripts/setup says in one line what to install, and by which command."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.processes import LOOPBACK, REPOSITORY, free_port

TOOLS: Final = ("awk", "grep", "mkdir", "sed", "sh", "tail")  # of a bare system
OLD: Final = "exit 1"  # the exit status of the check whether it is new enough
STRANGER: Final = "echo 1000"  # what id prints for a user other than root
NEVER: Final = "exit 99"
PYTHON: Final = f"exec '{sys.executable}' \"$@\""
LOCK: Final = f"there-is-no-such-package==1 --hash=sha256:{'0' * 64}\n"


def said(folder: Path, programs: dict[str, str], *packages: str, **environment: str) -> str:
    """What it prints before it gives up, on a machine with these programs (name → lines of sh) in its PATH."""
    path = folder / "bin"
    path.mkdir()
    for name in TOOLS:
        (path / name).symlink_to(shutil.which(name) or pytest.fail(f"{name} is missing"))
    for name, lines in ({"id": STRANGER} | programs).items():
        (path / name).write_text(f"#!/bin/sh\n{lines}\n", "utf-8")
        (path / name).chmod(0o755)
    (folder / "lock").write_text(LOCK, "utf-8")
    done = subprocess.run(
        [REPOSITORY / "scripts/setup", "python3", "venv", "lock", "15 MB", *packages],
        cwd=folder,
        env={"PATH": str(path), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


@pytest.mark.parametrize(
    ("programs", "advice"),
    [
        ({}, "please install Python 3.11 or newer"),
        ({"apt-get": NEVER}, "please run as root: apt-get install -y python3 python3-venv"),
        (
            {"apt-get": NEVER, "python3": OLD},
            "please run as root: apt-get install -y python3.11 python3.11-venv",
        ),
        ({"dnf": NEVER}, "please run as root: dnf install -y python3.12"),
        ({"dnf": NEVER, "python3": OLD}, "please run as root: dnf install -y python3.12"),
        ({"brew": NEVER, "python3": OLD}, "please run: brew install python@3.13"),
    ],
)
def test_python_is_asked_for_by_the_name_that_the_system_has_for_it(
    tmp_path: Path, programs: dict[str, str], advice: str
) -> None:
    assert said(tmp_path, programs) == f"setup: {advice}\n"


def test_all_that_is_missing_is_asked_for_at_once(tmp_path: Path) -> None:
    no_venv = f'[ "$2" != "import ensurepip" ] || exit 1; {PYTHON}'
    programs = {"apt-get": NEVER, "python3": no_venv, "php": NEVER}
    answer = said(tmp_path, programs, "wrk", "php-cli", "php-curl")
    assert answer == (
        "setup: please run as root: apt-get install -y python3-venv wrk php-curl "
        "(some tests run without: CONTRIBUTING.md)\n"
    )


def test_elsewhere_what_the_tests_need_is_told_by_its_name_in_debian(tmp_path: Path) -> None:
    answer = said(tmp_path, {"dnf": NEVER, "curl": NEVER}, "curl", "wrk", "golang-go")
    assert answer == (
        "setup: please run as root: dnf install -y python3.12, and install what Debian calls wrk golang-go "
        "(some tests run without: CONTRIBUTING.md)\n"
    )


def test_what_apt_get_cannot_install_is_told(tmp_path: Path) -> None:
    apt = "echo 'E: Unable to locate package wrk' >&2; exit 100"
    sudo = 'shift; exec "$@"'  # one that asks for no password
    programs = {"apt-get": apt, "sudo": sudo, "true": "", "python3": PYTHON}
    assert said(tmp_path, programs, "wrk") == (
        "setup: installing wrk with apt-get\n"
        "setup: apt-get cannot install all of it (some tests run without: CONTRIBUTING.md): "
        "Unable to locate package wrk\n"
    )


def test_a_newer_python_beside_an_old_one_is_taken_and_a_network_that_fails_is_told(
    tmp_path: Path,
) -> None:
    pip = tmp_path / "venv" / "bin" / "pip"
    pip.parent.mkdir(parents=True)
    pip.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m pip \"$@\"\n", "utf-8")
    pip.chmod(0o755)
    first, second, third = said(
        tmp_path,
        {"python3": OLD, "python3.12": PYTHON},
        PIP_CONFIG_FILE="/dev/null",
        PIP_INDEX_URL=f"http://{LOOPBACK}:{free_port()}/simple",
        PIP_RETRIES="1",
    ).splitlines()
    assert first == "setup: taking python3.12, as python3 is older than 3.11"
    assert second.startswith("setup: installing into venv: 15 MB of packages")
    assert third.startswith(
        "setup: pip cannot reach its index (PIP_INDEX_URL=https://... names another one): "
    )
    assert "Connection refused" in third
