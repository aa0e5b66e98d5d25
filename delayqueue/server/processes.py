"""Several server processes on one port, supervised by one that serves nothing itself."""

import asyncio
import ctypes
import logging
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.context import SpawnProcess
from typing import NoReturn, cast

from delayqueue.config.build import code_digest
from delayqueue.config.startup import StartupError
from delayqueue.tasks import at_most, left_when

log = logging.getLogger(__name__)

STOP_S = 15.0  # for workers to end; they give requests 4 s, then calls of webhooks 3 s
FIRST_PAUSE_S = 0.2  # before a dead worker is restarted; doubled while it keeps dying
LONGEST_PAUSE_S = 5.0
HANGS_S = 60  # as WatchdogSec: one try to reach the store can last several times its limit of 5 s
LEAST_BEAT_S = 0.1
STARTUP_FAILED = 2  # exit status of a worker that could not start and has said why

HELD_BACK = {signal.SIGHUP}  # until a worker ignores it: it would end the worker

PR_SET_PDEATHSIG = 1  # linux/prctl.h

# What a process runs, a picklable function that returns on SIGTERM; the block ends when the process has.
Prepare = Callable[[int], AbstractContextManager[Callable[[], None]]]

_SPAWN = multiprocessing.get_context("spawn")  # forking a running loop is not safe


def shared_numbers(numbers: Sequence[float]) -> MutableSequence[float]:
    """These numbers in shared memory, to pass to `work`: all processes see what one writes."""
    return cast("MutableSequence[float]", _SPAWN.RawArray("d", numbers))


class SameCode:
    """Goes to a process before all that only this version of the program may read.

    Objects are sent without the names of their fields, so the code of another version, which was installed meanwhile,
    would take one setting for another. The process ends instead.
    """

    def __init__(self) -> None:
        self._digest = code_digest()

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return _end_unless_same, (self._digest,)


def _end_unless_same(digest: str) -> None:
    if code_digest() != digest:
        _end(
            "the program's files are not those that the server was started with, as after an upgrade; "
            "restart the server"
        )


async def supervise(
    count: int,
    prepare: Prepare,
    stop: asyncio.Event,
    *,
    ports: Iterable[socket.socket] = (),
    stop_s: float = STOP_S,
) -> None:
    """Keep `count` processes running until `stop` is set, then end them, within `stop_s`.

    The `ports` that are held for them are closed at once then, so that another server can take over.
    One that ends by itself is replaced. `prepare` is called with a process's number, from 1 on, for each start of that
    process. Raises StartupError if one cannot start for the first time; it has said why itself.
    """
    keepers = [
        asyncio.create_task(_keep(prepare, number, stop, stop_s), name=_name(number))
        for number in range(1, count + 1)
    ]
    await stop.wait()
    log.info("stopping %d workers", count)
    for port in ports:
        port.close()
    for ended in await asyncio.gather(*keepers, return_exceptions=True):
        if isinstance(ended, BaseException):
            raise ended


def let_supervisor_reload() -> None:
    """Ignore SIGHUP in this worker, which a terminal or an operator sends to all processes: the supervisor acts."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)


async def _keep(prepare: Prepare, number: int, stop: asyncio.Event, stop_s: float) -> None:
    pause_s = FIRST_PAUSE_S
    starts = 0
    loop = asyncio.get_running_loop()
    try:
        while not stop.is_set():
            starts += 1
            started_at = loop.time()
            with prepare(number) as work:
                status = await run(work, _name(number), stop, stop_s)
            if stop.is_set():
                return
            if status == 0:
                log.info("worker %d has ended, replacing it", number)
                continue
            # later the others serve, and the cause may be corrected meanwhile
            if status == STARTUP_FAILED and starts == 1:
                raise StartupError("a worker could not start, see above")
            log.error("worker %d died (status %s), restarting it", number, status)
            lived_s = loop.time() - started_at
            pause_s = FIRST_PAUSE_S if lived_s > LONGEST_PAUSE_S else pause_s
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
    finally:
        stop.set()


async def run(
    work: Callable[[], None], name: str, stop: asyncio.Event, stop_s: float
) -> int | None:
    """Run a process of that name to its end, or until `stop` is set; returns its exit status."""
    process = _SPAWN.Process(target=_work, args=(work, os.getpid()), name=name)
    with _signals_held_back():
        process.start()
    await _ended_or_stopped(process, stop, stop_s)
    process.join()
    return process.exitcode


async def kill_hanging(pulses: Sequence[float]) -> None:
    """Kill each worker that hangs, so that it is replaced; until cancelled. `pulses` are those of Process.

    One hangs if its pulse stands still while this process counts HANGS_S seconds, one by one: while the machine or the
    whole server sleeps, none pass.
    """
    known, still_s = list(pulses), [0] * len(pulses)
    while True:
        await asyncio.sleep(1)
        for at, pulse in enumerate(pulses):
            still_s[at] += 1
            # the pulse of a timer that hangs still changes, by errors of rounding
            if pulse <= 0 or abs(pulse - known[at]) > LEAST_BEAT_S:
                known[at], still_s[at] = pulse, 0
            elif still_s[at] == HANGS_S:
                _kill(_name(at + 1))
                # afterwards: the worker may hang because nobody reads the log
                log.error("worker %d hangs: killed after %d s", at + 1, HANGS_S)


def _name(number: int) -> str:
    return f"worker {number}"


def _kill(name: str) -> None:
    for process in multiprocessing.active_children():
        if process.name == name:
            process.kill()


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """Hold HELD_BACK back in the processes that are started in the block, until they handle it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


async def _ended_or_stopped(process: SpawnProcess, stop: asyncio.Event, stop_s: float) -> None:
    """Return when the process has ended; end it when `stop` is set."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(process.sentinel, ended.set)
    try:
        async with left_when(stop):
            await ended.wait()
        if not ended.is_set():
            process.terminate()
            async with at_most(stop_s):
                await ended.wait()
        if not ended.is_set():
            log.warning("%s did not end in %g s, killing it", process.name, stop_s)
            process.kill()
            await ended.wait()
    finally:
        loop.remove_reader(process.sentinel)


def _work(work: Callable[[], None], supervisor: int) -> None:
    """A worker's life. It ends with its supervisor."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != supervisor:
        sys.exit(f"process {supervisor} is gone")
    try:
        work()
    except StartupError as error:
        _end(str(error))


def _end(why: str) -> NoReturn:
    sys.stderr.write(f"delay-queue: {why}\n")
    sys.exit(STARTUP_FAILED)
