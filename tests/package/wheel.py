"""The wheel and the sdist."""

import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Final

from delayqueue import __version__
from tests.processes import REPOSITORY, Processes

from .installed import Installed, try_server
from .tools import committed, copy, run, say

DIST: Final = REPOSITORY / "dist"
BARE: Final = {"delay-queue-server", "pip", "setuptools"}
# pushes a job, works on it, and ends
TASKS: Final = """\
import os
import signal

from delayqueue import Client, Worker

worker = Worker()


@worker.lifespan
async def push():
    with Client(worker.url) as queue:
        queue.push("tried", {"order": "1001"})
    yield


@worker.on("tried")
def work(said: dict) -> None:
    print("worked on", said["order"], flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
"""


def build(folder: Path) -> Path:
    """Make the sdist and from it the wheel, and check that the checkout makes the same one. Returns the wheel."""
    source, direct = folder / "source", folder / "direct"
    copy(committed(), REPOSITORY, source)
    commit = run("git", "rev-parse", "HEAD", cwd=REPOSITORY)
    (source / "delayqueue" / "COMMIT").write_text(commit, encoding="ascii")
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
    """It has every file of the program, the licence, and the program's version."""
    found = contents(wheel)
    missing = {name for name in committed() if name.startswith("delayqueue/")} - found.keys()
    assert not missing, f"not in the wheel: {sorted(missing)}"
    info = f"delay_queue_server-{__version__}.dist-info"
    assert f"\nVersion: {__version__}\n" in found[f"{info}/METADATA"].decode()
    assert f"{info}/licenses/LICENSE" in found


def try_wheel(wheel: Path, processes: Processes) -> None:
    """Install it into empty environments with its newest dependencies, and use it: the server, and only the client."""
    home = processes.home("wheel")
    program = install(f"{wheel}[embedded]", home)
    say("wheel: installed into an empty environment")
    server = processes.adopt(Installed(home, [str(program)], {}))
    client = processes.home("client")
    light = install(str(wheel), client)
    found = run(light.with_name("pip"), "list", "--format=freeze", cwd=client).split()
    assert {re.split("[ =@]", each)[0] for each in found} <= BARE, found
    say("wheel: without extras, with nothing else")
    (client / "tasks.py").write_text(TASKS)

    def use_client() -> None:
        options = ("--url", server.url, "--log-level", "error")
        assert run(light, "worker", "tasks:worker", *options, cwd=client) == "worked on 1001\n"

    try_server(server, home, meanwhile=use_client)


def install(wheel: str, home: Path) -> Path:
    """The program, in its own environment."""
    run(sys.executable, "-m", "venv", "venv", cwd=home)
    run(home / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel, cwd=home)
    program = home / "venv/bin/delay-queue"
    assert run(program, "--version", cwd=home).startswith(f"{__version__}+")
    return program
