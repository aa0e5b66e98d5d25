"""What waiting polls cost if their lists of topics differ, beside polls that all send the same list."""

import asyncio
import json
import statistics
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from itertools import combinations, islice
from typing import Any, Final

from bench.measure import Figure, Measure, Outcome, Scale, new_topic
from bench.processes import BenchError
from bench.rates import Processor
from bench.target import Server

POLLS: Final = 500
LISTED: Final = 64  # topics of each list
TOPICS: Final = 67
WORKERS: Final = 20  # that poll again for each job
JOBS: Final = 400  # no more than polls: each job ends one
WORKED_JOBS: Final = 2_000
IDLE_S: Final = 5
SETTLE_S: Final = 2.0  # for the polls' first questions
WAIT_S: Final = 60
TTR_S: Final = 3_600

Lists = list[list[str]]


class Connection:
    """A connection for one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def post(self, path: str, asked: object) -> Any:
        """The data of the answer. Raises BenchError if its code is not 0."""
        body = json.dumps(asked)
        head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(body)}"
        self._writer.write(f"{head}\r\n\r\n{body}".encode())
        answer = json.loads(await self._body())
        if answer["code"]:
            raise BenchError(f"{path}: {answer['message']}")
        return answer["data"]

    async def read(self, path: str) -> bytes:
        """The body of the answer to a GET."""
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
        return await self._body()

    async def _body(self) -> bytes:
        length = 0
        while line := (await self._reader.readline()).strip():
            name, _, value = line.lower().partition(b": ")
            length = int(value) if name == b"content-length" else length
        return await self._reader.readexactly(length)

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        await self._writer.wait_closed()


async def connect(port: int, stack: AsyncExitStack) -> Connection:
    """A connection until the end of the stack."""
    connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
    stack.push_async_callback(connection.close)
    return connection


def begin(work: Coroutine[Any, Any, Any], stack: AsyncExitStack) -> asyncio.Task[Any]:
    """A task until the end of the stack."""
    task = asyncio.create_task(work)
    stack.callback(task.cancel)
    return task


async def push(connection: Connection, topic: str, number: int) -> None:
    """Push a job that is ready at once."""
    job = {"topic": topic, "id": f"{topic}-{number}", "delay": 0, "ttr": TTR_S, "body": "body"}
    await connection.post("/push", job)


def different(topics: list[str]) -> Lists:
    """As many lists as there are polls: each lacks other topics."""
    lacking = islice(combinations(topics, TOPICS - LISTED), POLLS)
    return [[topic for topic in topics if topic not in lack] for lack in lacking]


def same(topics: list[str]) -> Lists:
    """The same list for every poll."""
    return [topics[-LISTED:]] * POLLS


def turned(topics: list[str]) -> Lists:
    """Each list begins at another topic."""
    listed = topics[-LISTED:]
    return [listed[at:] + listed[:at] for at in range(WORKERS)]


LISTS: Final[dict[str, Callable[[list[str]], Lists]]] = {"same": same, "different": different}


def lists(server: Server, _scale: Scale) -> Outcome:
    """The processor time of a job that ends a poll, of a worker's whole round, and the commands of polls at rest."""
    figures: dict[str, Figure] = {}
    for name, listing in LISTS.items():
        figures |= _named(name, asyncio.run(arrivals(server, listing(_topics()))))
    for name, listing in {"same": same, "turned": turned}.items():
        workers = listing(_topics())[:WORKERS]
        figures |= _named(f"{WORKERS} workers, {name}", asyncio.run(rounds(server, workers)))
    return Outcome(figures)


def _topics() -> list[str]:
    prefix = new_topic()
    return [f"{prefix}-{number}" for number in range(TOPICS)]


def _named(name: str, figures: dict[str, Figure]) -> dict[str, Figure]:
    return {f"{name}: {figure}": value for figure, value in figures.items()}


async def arrivals(server: Server, each_list: Lists) -> dict[str, Figure]:
    """A poll waits for each list: what they cost at rest, and what each job costs that comes then, one at a time."""
    async with AsyncExitStack() as stack:
        pusher = await connect(server.port, stack)
        waiting = set[asyncio.Task[Any]]()
        for each in each_list:
            asked = {"topic": ",".join(each), "timeout": WAIT_S}
            poll = (await connect(server.port, stack)).post("/pop", asked)
            waiting.add(begin(poll, stack))
        await asyncio.sleep(SETTLE_S)
        commands = server.seen().commands()
        await asyncio.sleep(IDLE_S)
        at_rest = (server.seen().commands() - commands) / IDLE_S
        processor, took_s, taken = Processor(server, server.port), [], []
        for number in range(JOBS):
            began_s = time.perf_counter()
            topic = each_list[0][number * 7 % LISTED]
            await push(pusher, topic, number)
            ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            took_s.append(time.perf_counter() - began_s)
            taken += [task.result() for task in ended]
        figures = processor.spent(JOBS)
        if not all(taken):
            raise BenchError("a poll ended without a job")
        for job in taken:  # else the server looks after them while the next polls are at rest
            await pusher.post("/finish", {"id": job["id"], "receipt": job["receipt"]})
    return figures | {
        "until a worker has it": Figure(1000 * statistics.median(took_s), "ms"),
        "at rest": Figure(at_rest, "commands/s"),
    }


async def rounds(server: Server, each_list: Lists) -> dict[str, Figure]:
    """A worker for each list pops, finishes and pops again, while jobs come one at a time."""
    async with AsyncExitStack() as stack:
        pusher = await connect(server.port, stack)
        done = asyncio.Queue[None]()

        async def work(connection: Connection, topics: list[str]) -> None:
            while True:
                job = await connection.post("/pop", {"topic": ",".join(topics), "timeout": WAIT_S})
                await connection.post("/finish", {"id": job["id"], "receipt": job["receipt"]})
                done.put_nowait(None)

        for each in each_list:
            begin(work(await connect(server.port, stack), each), stack)
        await asyncio.sleep(SETTLE_S)
        processor = Processor(server, server.port)
        for number in range(WORKED_JOBS):
            topic = each_list[0][number * 7 % LISTED]
            await push(pusher, topic, number)
            await done.get()
        return processor.spent(WORKED_JOBS)


MEASURES: Final = (
    Measure(
        "lists",
        f"{POLLS} polls with different lists of {LISTED} topics",
        lists,
        repeated=False,
        by_default=False,
    ),
)
