"""The server as one file."""

import sys
from pathlib import Path

from tests.processes import REPOSITORY, Processes

from .installed import Installed, try_server
from .tools import run, say


def try_single_file(wheel: Path, processes: Processes) -> None:
    """Make it, and use its server, with its own store, by a Python that has nothing installed."""
    say(
        run(
            sys.executable, REPOSITORY / "scripts" / "single_file.py", wheel, cwd=REPOSITORY
        ).strip()
    )
    [made] = wheel.parent.glob("*.pyz")
    home = processes.home("single-file")
    run(sys.executable, "-m", "venv", "--without-pip", "bare", cwd=home)
    program = [str(home / "bare" / "bin" / "python"), str(made)]
    variables = {"XDG_CACHE_HOME": str(home / "cache")}
    try_server(processes.adopt(Installed(home, program, variables)), home)
