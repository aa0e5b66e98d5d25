"""Jobs that call their own URLs: many due at once, to 50 hosts, beside a worker that does the same with httpx2.

And what one dead host, and what targets that hang, or never end an answer, cost everybody else.
"""

import asyncio
import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, cast

import uvloop

from bench.measure import Figure, Measure, Outcome, Scale, new_topic, per_second
from bench.probe import ANSWER_S, Probe, percentile
from bench.processes import BenchError, cpu_seconds, listeners, running
from bench.target import Server
from delayqueue import AsyncClient
from delayqueue.client import Job

HOSTS: Final = 50  # 127.0.1.1 and so on
DEAD: Final = 0  # the one of them that accepts connections and never answers
BATCH: Final = 500
PUSHED_A_S: Final = 500  # at least: the jobs are due once all are pushed
READY_S: Final = 5.0  # within which a worker is
DRAIN_S: Final = 900.0
# of the worker: with more, the pool of its HTTP client takes most of the time
CONCURRENCY: Final = 100
BESIDE_S: Final = 8.0
BAD_JOBS: Final = 100  # for each bad target
BAD_TIMEOUT_S: Final = 2
TIMEOUT_S: Final = 300  # on a busy machine a call may take long
TURN_BYTES: Final = 4096
PER_CALL: Final = ("µs/call", "calls/call")


class Receiver:
    """Answers each request on all hosts with 200 at once, but those to the dead one. A body is when it was due.

    Only requests that were due at `due_s` count: others are left of what was measured before.
    """

    def __init__(self) -> None:
        self.due_s = 0.0
        self.late_ms: list[tuple[float, float]] = []  # when it arrived, and how late
        self.port = 0
        self.is_dead = False  # whether DEAD is

    def url(self, host: int) -> str:
        """Where a host is called."""
        return f"http://{self.address(host)}:{self.port}/"

    @staticmethod
    def address(host: int) -> str:
        """The address of a host."""
        return f"127.0.1.{host + 1}"

    async def reached(self, calls: int) -> None:
        """Wait for that many calls. Raises BenchError if they do not come."""
        end_s = time.monotonic() + DRAIN_S
        while len(self.late_ms) < calls:
            if time.monotonic() > end_s:
                raise BenchError(
                    f"{calls - len(self.late_ms)} calls did not come in {DRAIN_S:.0f} s"
                )
            await asyncio.sleep(0.02)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listen while the block runs."""
        loop = asyncio.get_running_loop()
        listener = socket.create_server(("0.0.0.0", 0), backlog=4096)  # all of 127.0.1.*
        self.port = listener.getsockname()[1]
        server = await loop.create_server(lambda: _Answering(self), sock=listener)
        try:
            yield
        finally:
            server.close()


class _Answering(asyncio.Protocol):
    """One connection to the receiver."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class
        own = transport.get_extra_info("sockname")[0]
        self._is_dead = self._receiver.is_dead and own == Receiver.address(DEAD)

    def data_received(self, data: bytes) -> None:
        if self._is_dead:
            return
        self._buffer += data
        while (head_end := self._buffer.find(b"\r\n\r\n") + 4) >= 4:
            head = self._buffer[:head_end].lower()
            size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(self._buffer) < head_end + size:
                return
            due_s = float(self._buffer[head_end : head_end + size])
            self._buffer = self._buffer[head_end + size :]
            now_s = time.time()
            if due_s == self._receiver.due_s:
                self._receiver.late_ms.append((now_s, 1000 * (now_s - due_s)))
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def calls(server: Server, scale: Scale) -> Outcome:
    """All alive, one dead, a worker; then the lateness of others, alone and beside bad targets."""
    figures = uvloop.run(_due_together(server, scale.calls))
    return Outcome(figures | _beside_bad_targets(server))


async def _due_together(server: Server, jobs: int) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    receiver = Receiver()
    async with receiver.listening(), AsyncClient(server.url) as queue:
        push = _pushing(queue, receiver, jobs, calls_itself=True)
        figures |= await _burst(server, receiver, "all alive", jobs, push)
        receiver.is_dead = True
        alive = jobs - jobs // HOSTS
        push = _pushing(queue, receiver, jobs, calls_itself=True)
        probe = Probe(server.url)
        with probe.beside():
            found = await _burst(server, receiver, "one dead", alive, push)
        others = [(due_s, late_ms) for due_s, late_ms in probe.arrivals if due_s >= receiver.due_s]
        # without costs: what the probe takes is among them
        figures |= {name: each for name, each in found.items() if each.unit not in PER_CALL}
        figures["one dead: others' late p99"] = Figure(percentile(others, 99), "ms")
        receiver.is_dead = False
        topic = new_topic()
        with _worker(server, topic) as pid:
            push = _pushing(queue, receiver, jobs, calls_itself=False, topic=topic)
            figures |= await _burst(server, receiver, "worker", jobs, push, {"worker": [pid]})
    return figures


def _pushing(
    queue: AsyncClient, receiver: Receiver, jobs: int, *, calls_itself: bool, topic: str = ""
) -> Callable[[float], Awaitable[None]]:
    """Pushes jobs that are due then: with a call, or for the worker, with the URL as a header of its own."""
    topic = topic or new_topic()

    def job(number: int, due_s: float) -> Job:
        url = receiver.url(number % HOSTS)
        if calls_itself:
            call = {"url": url, "timeout": TIMEOUT_S}
            return Job(topic=topic, body=str(due_s), due=due_s, call=call)
        return Job(topic=topic, body=f"{due_s} {url}", due=due_s)

    async def push(due_s: float) -> None:
        pushed = [job(number, due_s) for number in range(jobs)]
        for at in range(0, jobs, BATCH):
            await queue.push_many(pushed[at : at + BATCH])

    return push


async def _burst(
    server: Server,
    receiver: Receiver,
    name: str,
    calls: int,
    push: Callable[[float], Awaitable[None]],
    others: dict[str, list[int]] | None = None,
) -> dict[str, Figure]:
    """The rate of the calls, how late they are, and what they cost from their due time on."""
    store = server.seen()
    receiver.late_ms.clear()
    due_s = receiver.due_s = time.time() + READY_S + calls / PUSHED_A_S
    await push(due_s)
    if time.time() > due_s:
        raise BenchError(f"{name}: the jobs were due before all were pushed")
    await asyncio.sleep(due_s - 0.2 - time.time())
    pids = {"server": listeners(server.port), "Redis": [int(store.info("process_id"))]}
    pids |= others or {}
    before = {who: cpu_seconds(them) for who, them in pids.items()}
    scripts = store.script_calls()
    await receiver.reached(calls)
    took_s = time.time() - due_s
    await asyncio.sleep(0.5)  # the last jobs end
    costs = {
        f"{name}: {who}": Figure(1e6 * (cpu_seconds(them) - before[who]) / calls, PER_CALL[0])
        for who, them in pids.items()
    }
    return {
        f"{name}: calls": per_second(calls / took_s),
        f"{name}: all came within": Figure(took_s, "s"),
        f"{name}: late p50": Figure(percentile(receiver.late_ms, 50), "ms"),
        f"{name}: late p99": Figure(percentile(receiver.late_ms, 99), "ms"),
        **costs,
        f"{name}: store calls": Figure((store.script_calls() - scripts) / calls, PER_CALL[1]),
    }


@contextlib.contextmanager
def _worker(server: Server, topic: str) -> Iterator[int]:
    """A process with our Worker, whose handler sends the request; yields its id."""
    command = [sys.executable, "-m", "bench.calls", server.url, topic]
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with running(command, Path(os.devnull), environ) as child:
        yield child.pid


def work(url: str, topic: str) -> None:
    """Do what the server does, as a worker: post the body to the job's URL."""
    import httpx2  # noqa: PLC0415  # only the worker's process needs it

    from delayqueue.worker import ReservedJob, Worker  # noqa: PLC0415

    worker = Worker(url, concurrency=CONCURRENCY)
    limits = httpx2.Limits(max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY)
    session = httpx2.AsyncClient(limits=limits, timeout=TIMEOUT_S)

    @worker.on(topic)
    async def call(job: ReservedJob) -> None:
        body, _, target = str(job.body).partition(" ")
        (await session.post(target, content=body)).raise_for_status()

    worker.run()


class Bad(NamedTuple):
    """A target that answers so: `first`, then `again` and again; `resets`: instead, it breaks off."""

    first: bytes = b""
    again: bytes = b""
    resets: bool = False


BAD_TARGETS: Final = {
    "hang": Bad(),
    "stream": Bad(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", b"x"),
    "reset": Bad(resets=True),
    "redirect": Bad(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
    "100": Bad(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "103": Bad(b"", b"HTTP/1.1 103 Early\r\nX: y\r\n\r\n"),
}


def _beside_bad_targets(server: Server) -> dict[str, Figure]:
    """How late the jobs of a probe are: alone, and while jobs call each of the bad targets."""
    figures = {"others alone: late p99": Figure(_probed(server, None), "ms")}
    for name, bad in BAD_TARGETS.items():
        with _answering(bad) as port:
            late_ms = _probed(server, port)
        figures[f"others beside {name}: late p99"] = Figure(late_ms, "ms")
    return figures


def _probed(server: Server, port: int | None) -> float:
    """p99 of the probe's lateness for a while, beside jobs that call that port."""
    probe = Probe(server.url)
    with probe.beside():
        if port is not None:
            asyncio.run(_push_bad(server.url, port))
        time.sleep(BESIDE_S)
    return percentile(probe.arrivals, 99)


async def _push_bad(url: str, port: int) -> None:
    """Jobs that are called again and again, at several hosts."""
    topic, retry = new_topic(), ["500ms"] * 10
    async with AsyncClient(url, timeout=ANSWER_S) as queue:
        hosts = [f"http://{Receiver.address(number % 10)}:{port}/" for number in range(BAD_JOBS)]
        calls = [{"url": host, "timeout": BAD_TIMEOUT_S} for host in hosts]
        await queue.push_many(
            [Job(topic=topic, body="1", call=call, retry=retry) for call in calls]
        )


@contextlib.contextmanager
def _answering(bad: Bad) -> Iterator[int]:
    """A port where each request is answered so, by a loop in a thread of its own."""
    is_over = threading.Event()
    listener = socket.create_server(("0.0.0.0", 0), backlog=4096)  # all of 127.0.1.*

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await reader.read(TURN_BYTES)
            if bad.resets:
                writer.transport.abort()
                return
            writer.write(bad.first)
            while bad.again:
                writer.write(bad.again * (TURN_BYTES // len(bad.again)))
                await writer.drain()
            await reader.read()
        writer.transport.abort()

    async def serve() -> None:
        begun = set[asyncio.Task[None]]()

        def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(answer(reader, writer))  # cancelled at the end, in silence
            begun.add(task)
            task.add_done_callback(begun.discard)

        server = await asyncio.start_server(begin, sock=listener)
        await asyncio.to_thread(is_over.wait)
        server.close()  # nothing begins any more while the others are cancelled

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        is_over.set()
        thread.join()


MEASURES: Final = (
    Measure("calls", "jobs that call their URLs: rate, costs, others", calls, by_default=False),
)

if __name__ == "__main__":
    work(*sys.argv[1:])
