"""The programs of the peers, in a cache outside of this checkout. Who cannot have one raises BenchError."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from bench.processes import BenchError

HERE: Final = Path(__file__).parent
CACHE: Final = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "delay-queue-bench"
)
INSTALL_S: Final = 600


def bullmq() -> tuple[list[str], str]:
    """The command of BullMQ's program, and the versions that it runs with."""
    folder = CACHE / "bullmq"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc", "bullmq.mjs"):
        shutil.copy(HERE / name, folder)
    wanted, mark = HERE / "package-lock.json", folder / "installed.json"
    if not _is_same(wanted, mark):
        _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", folder=folder)
        shutil.copy(wanted, mark)
    packages = json.loads((HERE / "package.json").read_text())["dependencies"]
    node = _run("node", "--version").strip().removeprefix("v")
    versions = f"BullMQ {packages['bullmq']}, ioredis {packages['ioredis']}, Node {node}"
    return ["node", str(folder / "bullmq.mjs")], versions


def in_go(package: str, side: str) -> tuple[list[str], str]:
    """The command of the program in Go, as one side, and the version of that side's package in it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    program = CACHE / "peers"
    _run("go", "build", "-o", str(program), ".", folder=HERE)
    told = _run("go", "list", "-m", "-f", "{{.Version}}", package, folder=HERE).strip()
    return [str(program), side], f"{package.rpartition('/')[2]} {told.removeprefix('v')}"


def arq() -> tuple[list[str], str]:
    """The command of arq's program, and its version: in an environment of its own, since it needs an older redis-py."""
    folder, wanted = CACHE / "arq", HERE / "arq.txt"
    python, mark = folder / "bin" / "python", folder / wanted.name
    if not _is_same(wanted, mark):
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        _run(str(python), "-m", "pip", "install", "--quiet", "--requirement", str(wanted))
        shutil.copy(wanted, mark)
    versions = wanted.read_text().replace("[hiredis]", "").replace("==", " ").split("\n")
    return [str(python), "-m", "bench.peers.with_arq"], ", ".join(filter(None, versions))


def beanstalkd() -> str:
    """The version of the program of that name."""
    return _run("beanstalkd", "-v").strip()


def _is_same(wanted: Path, mark: Path) -> bool:
    """Whether that is what was installed."""
    return mark.exists() and mark.read_bytes() == wanted.read_bytes()


def _run(*command: str, folder: Path | None = None) -> str:
    """Its output. Raises BenchError with its last words if it fails."""
    try:
        ended = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True, timeout=INSTALL_S
        )
    except FileNotFoundError:
        raise BenchError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"{command[0]}: not within {INSTALL_S} s") from None
    except subprocess.CalledProcessError as error:
        words = (error.stderr.strip() or error.stdout.strip()).splitlines() or [""]
        raise BenchError(f"{' '.join(command[:2])} failed: {words[-1]}") from None
    return ended.stdout
