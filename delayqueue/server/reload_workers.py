"""Reloads the settings of all worker processes of a server: a two-phase commit, so all use them or none does.

The supervisor, its coordinator, sends a config to each worker. A worker prepares it, which can fail, and votes; then
the coordinator sends the decision, which every worker can carry out.
"""

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

from delayqueue.config.config import Config
from delayqueue.server.reload import READ_S
from delayqueue.threads import Threads

VOTE_S: Final = READ_S + 15.0  # for a worker's vote; it gives up sooner by itself


class Serving(NamedTuple):
    """From a worker: it serves, and can vote from now on."""


class Prepare(NamedTuple):
    """To a worker: prepare this config, and vote. A bool follows: whether to use it."""

    number: int
    config: Config


class Vote(NamedTuple):
    """From a worker: why it cannot use the config of that number; no refusals if it can."""

    number: int
    refusals: list[str]


class Coordinator:
    """The supervisor's side: the workers, and the config that they use."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.one_has_served = asyncio.Event()
        self._lines: dict[int, _Line] = {}

    @contextmanager
    def line(self, number: int) -> Iterator[Connection]:
        """The connection for a worker that is started with the present config, until it has ended."""
        ours, theirs = multiprocessing.Pipe()
        line = self._lines[number] = _Line(number, ours, self)
        try:
            yield theirs
        finally:
            del self._lines[number]
            line.close()
            theirs.close()

    async def change(self, config: Config) -> list[str]:
        """Let all workers use this config, if each that serves can. Returns why not; [] if they do.

        Those that are about to start get it as soon as they serve. Before the first one serves, it waits: during the
        start nobody can say whether a config can be used.
        """
        await self.one_has_served.wait()
        voting = [line for line in self._lines.values() if line.serves]
        votes = await asyncio.gather(*(line.vote(config) for line in voting))
        refusals = list(dict.fromkeys(reason for vote in votes for reason in vote))
        if not refusals:
            self.config = config
        for line in voting:
            line.decide(config, commit=not refusals)
        for line in self._lines.values():
            line.catch_up()
        return refusals


class _Line:
    """The coordinator's connection to a worker, and the state of its vote."""

    def __init__(self, number: int, connection: Connection, coordinator: Coordinator) -> None:
        self.serves = False
        self._number = number
        self._connection = connection
        self._coordinator = coordinator
        self._uses = coordinator.config
        self._numbers = count()
        self._awaited = 0
        self._vote: asyncio.Future[list[str]] | None = None
        self._unsent = asyncio.Queue[Prepare | bool]()
        self._sender = asyncio.create_task(self._send(), name=f"line to worker {number}")
        self._descriptor = connection.fileno()
        asyncio.get_running_loop().add_reader(self._descriptor, self._receive)

    async def vote(self, config: Config) -> list[str]:
        """Why the worker cannot use this config; [] if it can."""
        self._vote = asyncio.get_running_loop().create_future()
        self._awaited = self._put(config)
        try:
            async with asyncio.timeout(VOTE_S):
                return await self._vote
        except TimeoutError:
            return [f"worker {self._number} does not answer"]

    def decide(self, config: Config, *, commit: bool) -> None:
        """Send the decision: whether the worker uses the config that it has last prepared."""
        self._unsent.put_nowait(commit)
        if commit:
            self._uses = config

    def catch_up(self) -> None:
        """If the worker started with a config that is out of date, let it use the present one."""
        config = self._coordinator.config
        if self.serves and self._uses is not config:
            self._put(config)
            self.decide(config, commit=True)

    def close(self) -> None:
        """The worker has ended."""
        self._stop_receiving()
        self._sender.cancel()
        self._connection.close()
        self._settle([f"worker {self._number} ended meanwhile"])

    def _put(self, config: Config) -> int:
        number = next(self._numbers)
        self._unsent.put_nowait(Prepare(number, config))
        return number

    async def _send(self) -> None:
        with suppress(OSError):  # it has ended
            while True:
                # in a thread: it blocks if the worker is frozen and the config is long
                await Threads("line").run(partial(self._connection.send, await self._unsent.get()))

    def _receive(self) -> None:
        try:
            message: Any = self._connection.recv()
        except (EOFError, OSError):  # it is about to end
            self._stop_receiving()
            return
        match message:
            case Vote(self._awaited, refusals):
                self._settle(refusals)
            case Serving():
                self.serves = True
                self._coordinator.one_has_served.set()
                self.catch_up()

    def _settle(self, refusals: list[str]) -> None:
        if self._vote and not self._vote.done():
            self._vote.set_result(refusals)

    def _stop_receiving(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)


class Participant:
    """A worker's side."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._received = asyncio.Queue[Any]()
        asyncio.get_running_loop().add_reader(connection.fileno(), self._receive)

    def report_serving(self) -> None:
        """This worker serves, and can vote from now on."""
        self._connection.send(Serving())

    async def proposed(self) -> Prepare:
        """The next config to prepare."""
        proposed: Prepare = await self._received.get()
        return proposed

    async def vote(self, proposed: Prepare, refusals: list[str]) -> bool:
        """Send this worker's vote; returns the decision: whether all use that config."""
        self._connection.send(Vote(proposed.number, refusals))
        commit: bool = await self._received.get()
        return commit

    def _receive(self) -> None:
        try:
            self._received.put_nowait(self._connection.recv())
        # the supervisor has ended, and so will this process (processes.py)
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(self._connection.fileno())
