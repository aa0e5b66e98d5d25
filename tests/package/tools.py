"""What the trials of the packages share: commands, and the files that may get into a package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.processes import REPOSITORY

STEP_S: Final = 600


def without_checkout(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name != "PYTHONPATH"}


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints. Raises SystemExit with all of it if it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=without_checkout(dict(os.environ)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=STEP_S,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def committed() -> list[str]:
    """The files that git knows: nothing else may get into a package."""
    return run("git", "ls-files", cwd=REPOSITORY).splitlines()


def copy(names: list[str], source: Path, target: Path) -> None:
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, target / name)
