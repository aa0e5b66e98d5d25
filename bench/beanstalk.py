"""How many jobs a second through beanstalkd's protocol: put, reserve and delete, pipelined puts."""

import asyncio
import math
import random
import time
from collections.abc import Callable
from typing import cast

import uvloop

from bench.measure import (
    SLEEP_FROM_S,
    SLEEP_TO_S,
    Figure,
    Measure,
    Outcome,
    Scale,
    new_topic,
    per_second,
)
from bench.processes import BenchError
from bench.rates import BODY_BYTES, POPPED_SHARE, Processor, push
from bench.target import OURS, Server

CONNECTIONS = 32
PIPELINED_CONNECTIONS, IN_FLIGHT = 16, 50
TTR_S = 60
BODY = b"." * BODY_BYTES
END_S = 120.0  # a load that goes on for longer is hanging


class Tally:
    """What the clients of a load did, and whether they should go on."""

    def __init__(self, most: float) -> None:
        self.jobs = 0
        self.most = most
        self.is_over = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def did(self, jobs: int) -> None:
        self.jobs += jobs
        if self.jobs >= self.most:
            self.stop()

    def stop(self) -> None:
        self.is_over = True

    def end(self) -> None:
        """A client has nothing in flight any more."""
        if not self.ended.done():
            self.ended.set_result(None)

    def fail(self, reason: str) -> None:
        """An answer that refuses, or a broken connection: figures with errors in them are not reported."""
        if not self.ended.done():
            self.ended.set_exception(BenchError(reason))


class Client(asyncio.Protocol):
    """A connection. `asks` are the commands before the first job."""

    def __init__(self, tally: Tally, asks: bytes) -> None:
        self._tally = tally
        self._asks = asks
        self._unread = asks.count(b"\r\n")
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(self._asks)

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\r\n")
        if self._unread:
            begins = len(lines) == self._unread
            self._unread -= len(lines)
            if begins:
                self.go_on()
        elif lines:
            self.read(lines)

    def connection_lost(self, _error: Exception | None) -> None:
        self._tally.fail("the connection was closed")

    def go_on(self) -> None:
        """Ask for the next thing, unless the load is over."""
        raise NotImplementedError

    def read(self, lines: list[bytes]) -> None:
        raise NotImplementedError


class Producer(Client):
    """Puts `in_flight` jobs in one write, and the next ones when all are in."""

    def __init__(self, tally: Tally, topic: str, puts: bytes, in_flight: int) -> None:
        super().__init__(tally, b"use %s\r\n" % topic.encode())
        self._puts = puts
        self._in_flight = in_flight
        self._open = 0

    def go_on(self) -> None:
        if self._tally.is_over:
            self._tally.end()
        else:
            self._open = self._in_flight
            self.transport.write(self._puts)

    def read(self, lines: list[bytes]) -> None:
        if not all(line.startswith(b"INSERTED ") for line in lines):
            self._tally.fail(f"put: {lines[0].decode()}")
        self._open -= len(lines)
        self._tally.did(len(lines))
        if not self._open:
            self.go_on()


class Worker(Client):
    """Reserves a job, deletes it, and reserves the next one."""

    def __init__(self, tally: Tally, topic: str) -> None:
        super().__init__(tally, b"watch %s\r\nignore default\r\n" % topic.encode())
        self._job = b""

    def go_on(self) -> None:
        if self._tally.is_over:
            self._tally.end()
        else:
            self.transport.write(b"reserve\r\n")

    def read(self, lines: list[bytes]) -> None:
        for line in lines:
            if line == BODY:
                self.transport.write(b"delete %s\r\n" % self._job)
            elif line == b"DELETED":
                self._tally.did(1)
                self.go_on()
            elif line.startswith(b"RESERVED "):
                self._job = line.split()[1]
            else:
                self._tally.fail(f"reserve and delete: {line.decode()}")


async def _load(
    port: int, make: Callable[[Tally], Client], *, connections: int, most: float, seconds: float
) -> tuple[int, float]:
    """How many jobs the clients did, `most` or for `seconds`, and how long it took. Raises BenchError."""
    loop = asyncio.get_running_loop()
    tally = Tally(most)
    began_s = time.perf_counter()
    made = [
        (await loop.create_connection(lambda: make(tally), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    timer = loop.call_later(seconds, tally.stop)
    try:
        await asyncio.wait_for(tally.ended, END_S)
    except TimeoutError:
        raise BenchError(f"no end within {END_S:.0f} s") from None
    finally:
        took_s = time.perf_counter() - began_s
        timer.cancel()
        for client in made:
            client.transport.abort()
    return tally.jobs, took_s


def _put(
    server: Server,
    topic: str,
    *,
    in_flight: int = 1,
    asleep: bool = True,
    most: float = math.inf,
    seconds: float = END_S,
) -> tuple[int, float]:
    """Put jobs that sleep for a day or two, or ready ones."""

    def producer(tally: Tally) -> Client:
        delay_s = random.randrange(SLEEP_FROM_S, SLEEP_TO_S) if asleep else 0
        put = b"put 1024 %d %d %d\r\n%s\r\n" % (delay_s, TTR_S, BODY_BYTES, BODY)
        return Producer(tally, topic, put * in_flight, in_flight)

    connections = CONNECTIONS if in_flight == 1 else PIPELINED_CONNECTIONS
    load = _load(server.beanstalk(), producer, connections=connections, most=most, seconds=seconds)
    return uvloop.run(load)


def _end(server: Server, topic: str, most: float) -> tuple[int, float]:
    """Reserve and delete `most` jobs."""
    load = _load(
        server.beanstalk(),
        lambda tally: Worker(tally, topic),
        connections=CONNECTIONS,
        most=most,
        seconds=END_S,
    )
    return uvloop.run(load)


def _figures(name: str, server: Server, run: Callable[[], tuple[int, float]]) -> dict[str, Figure]:
    """Run a load: its rate, and the processor time of server and store per job."""
    processor = Processor(server, server.beanstalk())
    jobs, took_s = run()
    spent = {f"{name}, {part}": figure for part, figure in processor.spent(jobs).items()}
    return {name: per_second(jobs / took_s)} | spent


def beanstalk(server: Server, scale: Scale) -> Outcome:
    """The protocol of beanstalkd, and /push if the server has it."""
    seconds, topic = scale.seconds, new_topic()
    figures = _figures("put", server, lambda: _put(server, new_topic(), seconds=seconds))
    filled, _ = _put(server, topic, in_flight=IN_FLIGHT, asleep=False, most=scale.pop_jobs)
    ends = filled * POPPED_SHARE
    figures |= _figures("reserve, delete", server, lambda: _end(server, topic, ends))
    figures |= _figures(
        "put, pipelined",
        server,
        lambda: _put(server, new_topic(), in_flight=IN_FLIGHT, seconds=seconds),
    )
    if server.protocol == OURS:
        pushed = push(server, scale).figures
        figures |= {"/push": pushed["jobs"]} | {
            f"/push, {part}": pushed[part] for part in ("server", "store", "both")
        }
    return Outcome(figures)


MEASURES = (
    Measure(
        "beanstalk",
        "put, reserve and delete, pipelined puts through beanstalkd's protocol; /push beside them",
        beanstalk,
        by_default=False,
    ),
)
