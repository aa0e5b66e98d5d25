"""The verb `worker`: runs a Worker, and optionally restarts it after each change of the code."""

import os
import shlex
import sys
from argparse import Namespace
from pathlib import Path
from pkgutil import resolve_name
from typing import Final

from delayqueue import log
from delayqueue.cli.subcommand import DONE, USAGE, complain
from delayqueue.client.address import ServerAddress
from delayqueue.threads import not_waited_for
from delayqueue.worker import Worker
from delayqueue.worker.worker import DEFAULT_GRACE_S

STOP_S: Final = 5  # for jobs of the old code


def work(asked: Namespace) -> int:
    """Run the worker until it is told to stop. Returns the exit status."""
    if asked.reload:
        return _reload([sys.executable, "-m", "delayqueue", "worker", *_asked(asked)])
    log.set_up(asked.log_level, "text")
    sys.path.insert(0, os.getcwd())  # noqa: PTH109  # a str, for imports, as `python -m` does
    try:
        worker = resolve_name(asked.name)
    except (ImportError, AttributeError, ValueError) as error:
        return _refuse(f"{asked.name}: {error}; give MODULE:NAME of a Worker")
    if not isinstance(worker, Worker):
        return _refuse(f"{asked.name} is a {type(worker).__name__}; give MODULE:NAME of a Worker")
    if not worker.handlers.topics:
        return _refuse(
            f"{asked.name} has no handlers: decorate a function with {asked.name}.on() or task()"
        )
    worker.url = asked.url or worker.url
    worker.concurrency = asked.concurrency or worker.concurrency
    worker.prune = asked.prune
    try:
        ServerAddress.of(worker.url, worker.token)
    except ValueError as error:
        return _refuse(f"--url {error}")
    with not_waited_for():
        worker.run(grace=DEFAULT_GRACE_S if asked.grace is None else asked.grace)
    return DONE


def _asked(asked: Namespace) -> list[str]:
    """The arguments of the worker that is restarted."""
    options = {"url": asked.url, "concurrency": asked.concurrency, "grace": asked.grace}
    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    prune = ["--prune"] if asked.prune else []
    return [asked.name, *given, *prune, f"--log-level={asked.log_level}"]


def _refuse(message: str) -> int:
    return complain([message], USAGE)


def _reload(command: list[str]) -> int:
    """Run the command, and again after each change of a module here, until SIGTERM or SIGINT."""
    try:
        from watchfiles import PythonFilter, run_process  # noqa: PLC0415  # for development only
    except ImportError:
        return _refuse("--reload needs a package: pip install watchfiles")
    run_process(
        Path.cwd(),
        target=shlex.join(command),
        target_type="command",
        callback=_report_restart,
        watch_filter=PythonFilter(),
        sigint_timeout=STOP_S,
    )
    return DONE


def _report_restart(_changes: object) -> None:
    sys.stderr.write("delay-queue: the code has changed, restarting\n")
