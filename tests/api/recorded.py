"""Records what both ways in answer to odd requests, byte for byte: python -m tests.api.recorded.

Run it on a commit whose answers are right: test_recorded.py compares later ones with what it wrote.
"""

import asyncio
import itertools
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from hypothesis import HealthCheck, Phase, given, settings

from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer

from .dialogue import last_request
from .odd_requests import ID, streams
from .test_both_ways import SHAPES

RECORD: Final = Path(__file__).parent.parent / "compat" / "dialogues.json"
WAYS: Final = {"express": ("delayqueue",), "aiohttp": ("tests.ways_in", "aiohttp")}
NUMBERS: Final = itertools.count(100_000)
FUZZED: Final = 120
LONGEST_BYTES: Final = 900  # of what is sent, so that a person can read the record
TRIES: Final = 3  # what is not answered the same each time is not recorded
AT_ONCE: Final = 8
QUIET_S: Final = 0.3  # after which no more is expected before the end
ANSWER_S: Final = 20.0
HEAD: Final = re.compile(rb"(HTTP/1\.[01] [^\r]*\r\n)((?:[^\r\n]+\r\n)*)\r\n")
CHANGING: Final = {
    rb"\r\nDate: [^\r]*": b"\r\nDate: a date",
    rb'"(due|created|delay)":[0-9.]{10,}': rb'"\1":0',
}


class Dialogue(NamedTuple):
    """What a client sends at once, and what it gets by either way in."""

    name: str
    sent: bytes
    got: bytes


def read() -> Iterator[Dialogue]:
    """The record."""
    for name, (sent, got) in json.loads(RECORD.read_text("utf-8")).items():
        yield Dialogue(name, sent.encode("latin-1"), got.encode("latin-1"))


def server(processes: Processes, store: StoreServer, way: str) -> QueueServer:
    """A server with that way in."""
    found = store.settings(store.new_database())
    return processes.started(QueueServer(way, processes.home(way), found, program=WAYS[way]))


async def ask(port: int, sent: bytes, quiet_s: float = QUIET_S) -> bytes:
    """All that comes back, without what changes from one time to the other; a reset is told at its end."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    job, got = b"%06d" % next(NUMBERS), b""
    try:
        writer.write(sent.replace(ID, job))
        with suppress(TimeoutError):
            while more := await asyncio.wait_for(reader.read(1 << 16), quiet_s):
                got += more
        if not reader.at_eof() and not writer.is_closing():
            writer.write_eof()
        async with asyncio.timeout(ANSWER_S):
            got += await reader.read()
    except ConnectionError:
        got += b"(reset)"
    finally:
        writer.transport.abort()
    for pattern, instead in CHANGING.items():
        got = re.sub(pattern, instead, got)
    return HEAD.sub(_sorted, got.replace(job, ID))


def _sorted(head: re.Match[bytes]) -> bytes:
    """With its headers in one order: which one each way in has, means nothing."""
    return head[1] + b"".join(sorted(head[2].splitlines(keepends=True))) + b"\r\n"


async def record(ports: list[int]) -> None:
    """Write what the servers on these ports answer."""
    free, found = asyncio.Semaphore(AT_ONCE), dict[str, tuple[str, str]]()

    async def one(name: str, sent: bytes) -> None:
        async with free:
            got = {await ask(port, sent) for port in ports for _ in range(TRIES)}
        if len(got) == 1:
            found[name] = sent.decode("latin-1"), got.pop().decode("latin-1")

    await asyncio.gather(*(one(name, sent) for name, sent in to_send()))
    lines = [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in sorted(found.items())]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def to_send() -> Iterator[tuple[str, bytes]]:
    """What is sent, and its name."""
    drawn: list[bytes] = []

    @settings(
        max_examples=FUZZED,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(streams())
    def draw(stream: bytes) -> None:
        drawn.append(stream)

    draw()
    fuzzed = {f"fuzzed {n}": stream for n, stream in enumerate(drawn)}
    for name, stream in (SHAPES | fuzzed).items():
        if len(stream) <= LONGEST_BYTES:
            yield name, stream
            yield f"{name}, and one more", stream + last_request()


def main() -> None:
    """Record."""
    with TemporaryDirectory() as folder:
        processes = Processes(Path(folder))
        try:
            store = processes.redis()
            asyncio.run(record([server(processes, store, way).port for way in WAYS]))
        finally:
            processes.close()


if __name__ == "__main__":
    main()
