"""python -m bench.walk: which functions of the package a request calls, and how many calls these are.

A server of its own runs unchanged, but counts, and holds its timers during the way (counted.py): so nothing of its
background comes between, however busy the machine is. Each way is taken until the same calls have come several times.
"""

import argparse
import json
import secrets
import socket
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BufferedRWPair
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

from redis import Redis

from bench.counted import Call
from bench.processes import BenchError, program
from bench.target import own_server, redis_command
from tests.processes import free_port

KEPT: Final = Path(__file__).with_name("walk.json")
COUNTED: Final = Path(__file__).with_name("counted.py")
WARM_UP: Final = 2
AGREEING: Final = 4  # times with the same calls
MOST_TIMES: Final = 100
QUIET_TURNS: Final = 3  # of the server's loop and the store's without a call: the way is at its end
LIMIT_S: Final = 60.0
WAIT_S: Final = 30
DELAY_S: Final = 86_400
TTR_S: Final = 3_600

Steps = Iterator[None]  # what comes before the way, the way itself, what comes after it


class Length(NamedTuple):
    """How long a way is."""

    calls: int
    resumed: int  # of these, coroutines that go on after an await
    functions: int
    files: int


class Counted:
    """What the server calls, and the hold of its timers."""

    def __init__(self, calls: Path, store_port: int, stack: ExitStack) -> None:
        self._server: Connection = stack.enter_context(Client(str(calls)))
        self._store = stack.enter_context(Redis(port=store_port))

    def until_quiet(self, at_least: int = 0) -> tuple[Call, ...]:
        """The calls since the last time, once there are so many and no more come. No timer fires from now on."""
        found: list[Call] = []
        quiet = 0
        while quiet < QUIET_TURNS or len(found) < at_least:
            # the store answers those first who asked first: the server has its answers, too
            self._store.ping()
            more = self._since(released=False)
            quiet = 0 if more else quiet + 1
            found += more
        return tuple(found)

    def release(self) -> None:
        """Let the timers fire, also those that are late."""
        self._since(released=True)

    def _since(self, *, released: bool) -> list[Call]:
        self._server.send(released)
        return [Call(*call) for call in self._server.recv()]


class Clients:
    """Connections to the server: two over HTTP, and one through beanstalkd's protocol."""

    def __init__(self, port: int, beanstalk_port: int, stack: ExitStack) -> None:
        self._http, self._waiting, self._beanstalk = (
            stack.enter_context(_opened(each)) for each in (port, port, beanstalk_port)
        )

    def post(self, path: str, **request: object) -> Any:
        """The data of the answer."""
        _send(self._http, path, request)
        return _answer(self._http)

    def pop(self, topic: str) -> Any:
        """A ready job."""
        return self.post("/pop", topic=topic, timeout=WAIT_S)

    def begin_pop(self, topic: str) -> None:
        """Send a pop on the other connection."""
        _send(self._waiting, "/pop", {"topic": topic, "timeout": WAIT_S})

    def popped(self) -> Any:
        """The job that it gets."""
        return _answer(self._waiting)

    def command(self, line: str, body: str = "", *, answer: int = 1) -> list[bytes]:
        """Send a command of beanstalkd's protocol; returns so many lines of its answer."""
        self._beanstalk.write(f"{line}\r\n{body}".encode())
        self._beanstalk.flush()
        return [self._beanstalk.readline() for _ in range(answer)]


@contextmanager
def _opened(port: int) -> Iterator[BufferedRWPair]:
    """A connection whose every write is one packet."""
    with (
        socket.create_connection(("127.0.0.1", port), LIMIT_S) as connection,
        connection.makefile("rwb") as file,
    ):
        yield file


def _send(file: BufferedRWPair, path: str, request: object) -> None:
    body = json.dumps(request)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
    file.write(f"{head}\r\n\r\n{body}".encode())
    file.flush()


def _answer(file: BufferedRWPair) -> Any:
    length = 0
    while line := file.readline().strip():
        name, _, value = line.partition(b": ")
        length = int(value) if name == b"Content-Length" else length
    return json.loads(file.read(length))["data"]


def push(clients: Clients) -> Steps:
    """A job that is asleep for a day."""
    job = _job(DELAY_S)
    yield
    clients.post("/push", **job)
    yield


def push_to_a_waiting_pop(clients: Clients) -> Steps:
    """A ready job; both the push and the pop are answered."""
    job = _job()
    clients.begin_pop(job["topic"])
    yield
    clients.post("/push", **job)
    clients.popped()
    yield


def pop_that_waits(clients: Clients) -> Steps:
    """Until the pop waits."""
    job = _job()
    yield
    clients.begin_pop(job["topic"])
    yield
    clients.post("/push", **job)
    clients.popped()


def pop(clients: Clients) -> Steps:
    """A job is ready."""
    job = _job()
    clients.post("/push", **job)
    yield
    clients.pop(job["topic"])
    yield


def finish(clients: Clients) -> Steps:
    """A job that was popped, with its receipt."""
    job = _job()
    clients.post("/push", **job)
    popped = clients.pop(job["topic"])
    yield
    clients.post("/finish", id=job["id"], receipt=popped["receipt"])
    yield


def put(clients: Clients) -> Steps:
    """beanstalkd's push, of a job that is asleep for a day."""
    yield
    clients.command(f"put 1024 {DELAY_S} {TTR_S} 0", "\r\n")
    yield


def reserve(clients: Clients) -> Steps:
    """beanstalkd's pop. A job is ready."""
    clients.command(f"put 1024 0 {TTR_S} 0", "\r\n")
    yield
    (found, _) = clients.command("reserve", answer=2)
    yield
    clients.command(f"delete {found.split()[1].decode()}")


WAYS: Final[dict[str, Callable[[Clients], Steps]]] = {
    "push": push,
    "push to a waiting pop": push_to_a_waiting_pop,
    "pop that waits": pop_that_waits,
    "pop": pop,
    "finish": finish,
    "put": put,
    "reserve": reserve,
}


def _job(delay_s: int = 0) -> dict[str, Any]:
    """One of a topic of its own."""
    name = secrets.token_hex(8)
    return {"topic": name, "id": name, "delay": delay_s, "ttr": TTR_S, "body": "body"}


def walk(names: Iterable[str] = WAYS) -> dict[str, list[Call]]:
    """The calls of these ways, in order."""
    with _server() as (clients, counted):
        return {name: _usual(WAYS[name], clients, counted) for name in names}


@contextmanager
def _server() -> Iterator[tuple[Clients, Counted]]:
    port, beanstalk_port, store_port = free_port(), free_port(), free_port()
    options = {"beanstalk_address": f"127.0.0.1:{beanstalk_port}"}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        stack.enter_context(program(redis_command(store_port), store_port, folder))
        calls = folder / "calls"
        command = [sys.executable, str(COUNTED), str(calls)]
        stack.enter_context(own_server(folder, port, store_port, options, command))
        yield Clients(port, beanstalk_port, stack), Counted(calls, store_port, stack)


def _usual(way: Callable[[Clients], Steps], clients: Clients, counted: Counted) -> list[Call]:
    """What the server calls on this way nearly each time. Raises BenchError if that is unclear."""
    for _ in range(WARM_UP):
        _take(way(clients), counted)
    seen: Counter[tuple[Call, ...]] = Counter()
    for _ in range(MOST_TIMES):
        calls = _take(way(clients), counted)
        seen[calls] += 1
        if seen[calls] == AGREEING:
            return list(calls)
    raise BenchError(f"other calls nearly each of {MOST_TIMES} times: is this machine very busy?")


def _take(steps: Steps, counted: Counted) -> tuple[Call, ...]:
    next(steps)
    counted.until_quiet()
    next(steps)
    calls = counted.until_quiet(at_least=1)
    counted.release()
    deque(steps, maxlen=0)
    return calls


def length(calls: Sequence[Call]) -> Length:
    """The length of a way."""
    return Length(
        len(calls),
        sum(call.resumed for call in calls),
        len({(call.file, call.function) for call in calls}),
        len({call.file for call in calls}),
    )


def kept() -> dict[str, Length]:
    """The lengths in walk.json."""
    return {name: Length(**row) for name, row in json.loads(KEPT.read_text()).items()}


def keep(lengths: dict[str, Length]) -> None:
    """Write them into walk.json, a way in each line."""
    rows = [f"{json.dumps(name)}: {json.dumps(row._asdict())}" for name, row in lengths.items()]
    KEPT.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def main() -> None:
    """Print the ways, and a table of their lengths."""
    parser = argparse.ArgumentParser(prog="python -m bench.walk", description=__doc__)
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"default: all; {', '.join(WAYS)}")
    parser.add_argument("--by-count", action="store_true", help="not in order, but by their number")
    parser.add_argument("--keep", action="store_true", help=f"write the lengths to {KEPT.name}")
    asked = parser.parse_args()
    if unknown := set(asked.ways) - set(WAYS):
        parser.error(f"no way {', '.join(unknown)}; there are {', '.join(WAYS)}")
    found = walk(asked.ways or WAYS)
    for name, calls in found.items():
        print(f"{name}\n")
        print("\n".join(_by_count(calls) if asked.by_count else map(_line, calls)), end="\n\n")
    lengths = {name: length(calls) for name, calls in found.items()}
    print("\n".join(table(lengths, kept())))
    if asked.keep:
        keep(kept() | lengths)


def _line(call: Call) -> str:
    return f"  {'… ' if call.resumed else ''}{call.file}: {call.function}"


def _by_count(calls: Sequence[Call]) -> list[str]:
    return [f"{count:4}{_line(call)}" for call, count in Counter(calls).most_common()]


def table(lengths: dict[str, Length], before: dict[str, Length]) -> Iterator[str]:
    """The rows of a table of lengths, with the differences to `before`."""
    yield f"| way | {' | '.join(Length._fields)} |"
    yield "| --- | --- | --- | --- | --- |"
    for name, row in lengths.items():
        old = before.get(name, row)
        cells = [
            f"{now} ({now - was:+})" if now != was else f"{now}"
            for now, was in zip(row, old, strict=True)
        ]
        yield f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
