"""New settings for all worker processes of a server: all of them use these, or none does.

The supervisor sends a config to each worker. A worker prepares it, which can fail, and says why it cannot use it; then
the supervisor says whether all use it, which cannot fail.
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
from delayqueue.server.rereading import announce, collected, read_again, refuse
from delayqueue.threads import Threads

PATIENCE_S: Final = READ_S + 15.0  # for a worker's answer; it gives up sooner by itself


class Serving(NamedTuple):
    """A worker says: it serves."""


class Question(NamedTuple):
    """The supervisor says: prepare this config, and answer. A bool follows: whether to use it."""

    number: int
    config: Config


class Answer(NamedTuple):
    """A worker says why it cannot use the config of that question; nothing if it can."""

    number: int
    refusals: list[str]


class Members:
    """The supervisor's side: the workers, and the config that they use."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.one_has_served = asyncio.Event()
        self._lines: dict[int, _Line] = {}

    @contextmanager
    def line(self, number: int) -> Iterator[Connection]:
        """The end of the line for a worker that is started with the present config, until it has ended."""
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

        Those that are about to start get it as soon as they serve.
        """
        asked = [line for line in self._lines.values() if line.serves]
        answers = await asyncio.gather(*(line.ask(config) for line in asked))
        refusals = list(dict.fromkeys(reason for answer in answers for reason in answer))
        if not refusals:
            self.config = config
        for line in asked:
            line.decide(config, agreed=not refusals)
        for line in self._lines.values():
            line.catch_up()
        return refusals


async def follow_in_workers(members: Members, asked: asyncio.Event) -> None:
    """Reload the config whenever `asked` is set, until cancelled, for all workers or for none."""
    # during the start nobody can say whether a config can be used
    await members.one_has_served.wait()
    while True:
        await asked.wait()
        asked.clear()
        with collected() as refusals:
            found, left = await read_again(members.config)
            refusals.extend(await members.change(found))
        if refusals:
            refuse(refusals)
        else:
            announce(found, left)


class _Line:
    """What the supervisor says to a worker, and hears from it."""

    def __init__(self, number: int, connection: Connection, members: Members) -> None:
        self.serves = False
        self._number = number
        self._connection = connection
        self._members = members
        self._uses = members.config
        self._questions = count()
        self._awaited = 0
        self._answer: asyncio.Future[list[str]] | None = None
        self._to_say = asyncio.Queue[Question | bool]()
        self._sender = asyncio.create_task(self._send(), name=f"line to worker {number}")
        self._descriptor = connection.fileno()
        asyncio.get_running_loop().add_reader(self._descriptor, self._hear)

    async def ask(self, config: Config) -> list[str]:
        """Why the worker cannot use this config; [] if it can."""
        self._answer = asyncio.get_running_loop().create_future()
        self._awaited = self._put(config)
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._answer
        except TimeoutError:
            return [f"worker {self._number} does not answer"]

    def decide(self, config: Config, *, agreed: bool) -> None:
        """Say whether the worker is to use the config that it was last asked about."""
        self._to_say.put_nowait(agreed)
        if agreed:
            self._uses = config

    def catch_up(self) -> None:
        """If the worker started with a config that is out of date, let it use the present one."""
        config = self._members.config
        if self.serves and self._uses is not config:
            self._put(config)
            self.decide(config, agreed=True)

    def close(self) -> None:
        """The worker has ended."""
        self._unhear()
        self._sender.cancel()
        self._connection.close()
        self._settle([f"worker {self._number} ended meanwhile"])

    def _put(self, config: Config) -> int:
        number = next(self._questions)
        self._to_say.put_nowait(Question(number, config))
        return number

    async def _send(self) -> None:
        with suppress(OSError):  # it has ended
            while True:
                # in a thread: it blocks if the worker is frozen and the config is long
                await Threads("line").run(partial(self._connection.send, await self._to_say.get()))

    def _hear(self) -> None:
        try:
            said: Any = self._connection.recv()
        except (EOFError, OSError):  # it is about to end
            self._unhear()
            return
        match said:
            case Answer(self._awaited, refusals):
                self._settle(refusals)
            case Serving():
                self.serves = True
                self._members.one_has_served.set()
                self.catch_up()

    def _settle(self, refusals: list[str]) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_result(refusals)

    def _unhear(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)


class Member:
    """A worker's side."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._heard = asyncio.Queue[Any]()
        asyncio.get_running_loop().add_reader(connection.fileno(), self._hear)

    def say_serving(self) -> None:
        """This worker serves: it can be asked from now on."""
        self._connection.send(Serving())

    async def asked(self) -> Question:
        """The next question."""
        question: Question = await self._heard.get()
        return question

    async def agreed(self, question: Question, refusals: list[str]) -> bool:
        """Answer; returns whether all use that config."""
        self._connection.send(Answer(question.number, refusals))
        agreed: bool = await self._heard.get()
        return agreed

    def _hear(self) -> None:
        try:
            self._heard.put_nowait(self._connection.recv())
        except (
            EOFError,
            OSError,
        ):  # the supervisor has ended, and so will this process (processes.py)
            asyncio.get_running_loop().remove_reader(self._connection.fileno())
