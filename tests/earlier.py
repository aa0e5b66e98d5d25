"""The program of an earlier commit: its data is readable, and its servers work beside today's."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.processes import REPOSITORY, Processes, QueueServer, StoreServer

COMMIT: Final = "4d136e5"  # its verbs are scripts, all of which are built again at each call
# the last one whose number of buckets changed while servers answered
LIVE_MOVES: Final = "25742d3c"
BEFORE_NAMES: Final = "b712954"  # /pop does not know the field `worker` yet


class NoSuchCommit(Exception):
    """This clone does not have the commit."""


def program_of(commit: str, folder: Path) -> Path:
    """Put the files of a commit into a new folder. Raises NoSuchCommit."""
    archive = subprocess.run(
        ["git", "archive", commit, "delayqueue"], cwd=REPOSITORY, capture_output=True, check=False
    )
    if archive.returncode:
        said = archive.stderr.decode(errors="replace").strip()
        raise NoSuchCommit(f"there is no commit {commit} to take the earlier program from: {said}")
    folder.mkdir()
    subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
    return folder


def let_run(server: QueueServer, program: Path) -> QueueServer:
    """Make the server, which is not started yet, run the program in that folder."""
    # it knows no such setting
    server.wrap("env", "--unset=DELAYQUEUE_STRICT", f"PYTHONPATH={program}")
    return server


def strict_server(commit: str, processes: Processes, store: StoreServer) -> QueueServer:
    """A server of that commit, which refuses unknown fields. Skips the test if this clone does not have the commit."""
    home = processes.home("earlier")
    try:
        program = program_of(commit, home / "program")
    except NoSuchCommit as error:
        pytest.skip(str(error))
    settings = store.settings(store.new_database()) | {"strict": "yes"}
    server = QueueServer("earlier", home, settings)
    server.wrap("env", f"PYTHONPATH={program}")
    return processes.started(server)
