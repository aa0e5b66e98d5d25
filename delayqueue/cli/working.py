"""The verb `worker`: runs a Worker, in one process or several, and restarts it after each change of the code."""

import asyncio
import importlib
import os
import pkgutil
import shlex
import signal
import sys
from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from traceback import extract_tb
from typing import Final

import delayqueue
from delayqueue import log
from delayqueue.cli.subcommand import DONE, USAGE, complain
from delayqueue.client.address import URL_VARIABLE, ServerAddress
from delayqueue.config.startup import StartupError
from delayqueue.config.values import MAX_PORT, Address
from delayqueue.threads import not_waited_for
from delayqueue.worker import Worker
from delayqueue.worker.health import answering
from delayqueue.worker.process_limits import ProcessLimits
from delayqueue.worker.worker import DEFAULT_GRACE_S

VALUES: Final = ("url", "concurrency", "grace", "max_jobs", "max_memory", "health", "log_level")
OF_A_PROCESS: Final = ("name", *VALUES, "prune")
# frames of an import that are not the user's
NOT_THEIRS: Final = (pkgutil.__file__, importlib.__file__, str(Path(delayqueue.__file__).parent))
BROKEN: Final = 1  # exit status, as of any Python program that cannot be imported
CLIENTS: Final = ("client", "async_client")  # of a Worker, made at their first use
STOP_S: Final = 5  # for jobs of the old code
ALSO_S: Final = 10  # beyond the grace, before a process is killed: it ends itself first


def work(asked: Namespace) -> int:
    """Run the worker until it is told to stop. Returns the exit status."""
    processes = asked.processes or 1
    if asked.health and asked.health.port + processes - 1 > MAX_PORT:
        return complain(
            [
                f"--health {asked.health}: {processes} processes need as many ports, up to {MAX_PORT}"
            ],
            USAGE,
        )
    if asked.reload:
        return _reload([sys.executable, "-m", "delayqueue", "worker", *_asked(asked)])
    try:
        if processes == 1:
            _run(asked, 1)
            return DONE
        return asyncio.run(_supervise(asked))
    except StartupError as error:
        return _complain(error)


def _complain(error: StartupError) -> int:
    return complain([str(error)], BROKEN if isinstance(error, BrokenCode) else USAGE)


class BrokenCode(StartupError):
    """The module of the Worker cannot be imported: its own code raises."""


def _run(asked: Namespace, number: int) -> None:
    """Run the worker in this process, the `number`th. Raises StartupError if it cannot start."""
    log.set_up(asked.log_level, "text")
    worker = _worker(asked)
    worker.concurrency = asked.concurrency or worker.concurrency
    worker.prune = bool(asked.prune)
    worker.limits = ProcessLimits(asked.max_jobs, asked.max_memory)
    with _answering(asked.health, number, worker), not_waited_for():
        worker.run(grace=_grace_s(asked))


def _answering(
    first: Address | None, number: int, worker: Worker
) -> AbstractContextManager[object]:
    """Let the `number`th process answer /healthz and /metrics. Raises StartupError if its address cannot be used."""
    if first is None:
        return nullcontext()
    own = first._replace(port=first.port + number - 1)
    try:
        return answering(*own, worker.figures)
    except OSError as error:
        raise StartupError(f"--health {own}: {error.strerror}") from None


def _worker(asked: Namespace) -> Worker:
    """The Worker of that name. Raises StartupError if there is none, BrokenCode if its module raises."""
    sys.path.insert(0, os.getcwd())  # noqa: PTH109  # a str, for imports, as `python -m` does
    try:
        worker = resolve_name(asked.name)
        if isinstance(worker, Worker):
            worker.load()
    except Exception as error:
        if place := _place(error):
            raise BrokenCode(f"{place}: {type(error).__name__}: {error}") from None
        raise StartupError(f"{asked.name}: {error}; give MODULE:NAME of a Worker") from None
    if not isinstance(worker, Worker):
        kind = type(worker).__name__
        raise StartupError(f"{asked.name} is a {kind}; give MODULE:NAME of a Worker")
    if not worker.handlers.topics:
        raise StartupError(
            f"{asked.name} has no handlers: decorate a function with {asked.name}.on() or task()"
        )
    _address(worker, asked)
    return worker


def _address(worker: Worker, asked: Namespace) -> None:
    """Let the worker use `--url`, if that is given. Raises StartupError if it cannot, or its URL is none."""
    if asked.url is not None:
        for client in CLIENTS:
            if client in vars(worker):
                raise StartupError(
                    f"--url: {asked.name} has its {client} already, which does not use it; "
                    f"make that in a function, or set {URL_VARIABLE}"
                )
        worker.url = asked.url
    try:
        ServerAddress.of(worker.url, worker.token)
    except ValueError as error:
        raise StartupError(str(error)) from None


def _place(error: Exception) -> str:
    """The file and line of the user's code where it was raised; "" if none of it ran."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    theirs = [
        call
        for call in extract_tb(error.__traceback__)
        if not call.filename.startswith(("<frozen", *NOT_THEIRS))
    ]
    return f"{theirs[-1].filename}:{theirs[-1].lineno}" if theirs else ""


def _grace_s(asked: Namespace) -> float:
    return DEFAULT_GRACE_S if asked.grace is None else float(asked.grace)


def _try(asked: Namespace) -> None:
    """Load the code, and end this process with the status that tells whether it can work."""
    try:
        _worker(asked)
    except StartupError as error:
        sys.exit(_complain(error))


async def _supervise(asked: Namespace) -> int:
    """Keep several processes running, until SIGTERM or SIGINT. Returns the exit status.

    Raises StartupError if they cannot start.
    """
    from delayqueue.server.processes import run, supervise  # noqa: PLC0415  # not on Windows

    log.set_up(asked.log_level, "text")
    alone = Namespace(**{name: getattr(asked, name) for name in OF_A_PROCESS})  # can be pickled
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    # checked once, in a process of its own: this one would keep all that the code loads
    status = await run(partial(_try, alone), "trial", stop, STOP_S)
    if status and not stop.is_set():
        if status < 0:
            raise BrokenCode(f"{asked.name}: signal {-status} ended the process that loaded it")
        return status  # it has said why
    await supervise(
        asked.processes,
        lambda number: nullcontext(partial(_run, alone, number)),
        stop,
        stop_s=_grace_s(asked) + ALSO_S,
    )
    return DONE


def _asked(asked: Namespace) -> list[str]:
    """The arguments of the worker that is restarted."""
    options = {name: getattr(asked, name) for name in (*VALUES, "processes")}
    given = [
        f"--{name.replace('_', '-')}={value}"
        for name, value in options.items()
        if value is not None
    ]
    prune = ["--prune"] if asked.prune else []
    return [asked.name, *given, *prune]


def _reload(command: list[str]) -> int:
    """Run the command, and again after each change of a module here, until SIGTERM or SIGINT."""
    try:
        from watchfiles import PythonFilter, run_process  # noqa: PLC0415  # for development only
    except ImportError:
        return complain(["--reload needs a package: pip install watchfiles"], USAGE)
    with suppress(KeyboardInterrupt):  # a signal in the middle of a restart
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
    complain(["the code has changed, restarting"], DONE)
