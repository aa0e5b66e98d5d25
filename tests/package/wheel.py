"""The wheel and the sdist."""

from __future__ import annotations

import shutil
import sys
import zipfile
from typing import TYPE_CHECKING, Final

from delayqueue import __version__
from tests.processes import REPOSITORY

from .installed import Installed, try_server
from .tools import committed, copy, run, say

if TYPE_CHECKING:
    from pathlib import Path

    from tests.processes import Processes

DIST: Final = REPOSITORY / "dist"


def build(folder: Path) -> Path:
    """Make the sdist and from it the wheel, and see that the checkout makes the same one. Returns the wheel."""
    source, direct = folder / "source", folder / "direct"
    copy(committed(), REPOSITORY, source)
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", f"--outdir={DIST}", cwd=source)
    run(sys.executable, "-m", "build", "--wheel", f"--outdir={direct}", cwd=source)
    [wheel], [same] = DIST.glob("*.whl"), direct.glob("*.whl")
    assert contents(wheel) == contents(same), "the sdist makes another wheel"
    run(sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir(), cwd=folder)
    for made in sorted(DIST.iterdir()):
        say(f"{made.name}: {made.stat().st_size / 1000:.0f} kB")
    return wheel


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def look_into(wheel: Path) -> None:
    """Every file of the program is in it, the licence, and the version of the program."""
    found = contents(wheel)
    missing = {name for name in committed() if name.startswith("delayqueue/")} - found.keys()
    assert not missing, f"not in the wheel: {sorted(missing)}"
    info = f"delay_queue_server-{__version__}.dist-info"
    assert f"\nVersion: {__version__}\n" in found[f"{info}/METADATA"].decode()
    assert f"{info}/licenses/LICENSE" in found


def try_wheel(wheel: Path, processes: Processes) -> None:
    """Install it into an empty environment with the newest of what it needs, and use it."""
    home = processes.home("wheel")
    python = home / "venv/bin/python"
    run(sys.executable, "-m", "venv", "venv", cwd=home)
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[embedded]", cwd=home)
    program = home / "venv/bin/delay-queue"
    assert run(program, "--version", cwd=home) == f"{__version__}\n"
    say("wheel: installed into an empty environment")
    try_server(processes.adopt(Installed(home, [str(program)], {})), home)
