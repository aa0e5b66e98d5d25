"""The verb `worker`: run a Worker of one's own, again after each change of the code where that is wanted."""

import os
import signal
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from pkgutil import resolve_name
from typing import Final

from delayqueue import log
from delayqueue.cli.verb import DONE, USAGE, complain
from delayqueue.client.address import ServerAddress
from delayqueue.worker import Worker
from delayqueue.worker.worker import DEFAULT_GRACE_S

LOOK_S: Final = 0.5  # between two looks at the files
STOP_S: Final = 5.0  # for the jobs of the old code


def work(asked: Namespace) -> int:
    """Run the worker until it is told to stop. Returns the exit status."""
    if asked.reload:
        return _reload([sys.executable, "-m", "delayqueue", "worker", *_asked(asked)])
    log.set_up(asked.log_level, "text")
    sys.path.insert(0, os.getcwd())  # noqa: PTH109  # as text, for imports, as `python -m` does
    try:
        worker = resolve_name(asked.name)
    except (ImportError, AttributeError, ValueError) as error:
        return _refuse(f"{asked.name}: {error}; give MODULE:NAME of a Worker")
    if not isinstance(worker, Worker):
        return _refuse(f"{asked.name} is a {type(worker).__name__}; give MODULE:NAME of a Worker")
    if not worker.handlers.topics:
        return _refuse(f"{asked.name} has no handlers: decorate a function with {asked.name}.on()")
    worker.url = asked.url or worker.url
    worker.concurrency = asked.concurrency or worker.concurrency
    try:
        ServerAddress.of(worker.url, worker.token)
    except ValueError as error:
        return _refuse(f"--url {error}")
    worker.run(grace=DEFAULT_GRACE_S if asked.grace is None else asked.grace)
    return DONE


def _asked(asked: Namespace) -> list[str]:
    """The arguments of the worker that is started again and again."""
    options = {"url": asked.url, "concurrency": asked.concurrency, "grace": asked.grace}
    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    return [asked.name, *given, f"--log-level={asked.log_level}"]


def _refuse(message: str) -> int:
    return complain([message], USAGE)


def _reload(command: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(DONE))
    while True:
        seen = _changes()
        with subprocess.Popen(command) as process:  # noqa: S603  # this very program
            try:
                while _changes() == seen:
                    time.sleep(LOOK_S)
            finally:
                _stop(process)
        sys.stderr.write("delay-queue: the code has changed, starting again\n")


def _changes() -> dict[Path, float]:
    """When each module below this directory was changed."""
    files = [path for path in Path.cwd().rglob("*.py") if not _is_hidden(path)]
    return {path: path.stat().st_mtime for path in files if path.exists()}


def _is_hidden(path: Path) -> bool:
    """Whether it belongs to a virtual environment, a repository or a cache."""
    return any(part.startswith(".") for part in path.relative_to(Path.cwd()).parts)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
