"""The same bytes sent to the express lane and to aiohttp alone get the same answers, or a difference that has a reason.

HYPOTHESIS_PROFILE=long tries many more.
"""

import asyncio
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.processes import Processes, QueueServer, StoreServer

from .dialogue import NOT_HTTP, Seen, last_request, talk
from .odd_requests import BODIES, ID, pieces, streams

LONG: Final = os.environ.get("HYPOTHESIS_PROFILE") == "long"
SETTINGS: Final = settings(
    max_examples=3000 if LONG else 40,
    derandomize=not LONG,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
PAUSES_S: Final = st.sampled_from([0, 0.001, 0.005])
TRIES: Final = (0.1, 1.0)  # seconds in which nothing comes
NUMBERS: Final = itertools.count(1)


class Outcome(NamedTuple):
    """What a client has seen, and the state of its job."""

    seen: Seen
    job: Seen

    @property
    def is_refused(self) -> bool:
        """Whether the last answer says that the request was not HTTP."""
        answers = self.seen.answers
        return (
            bool(answers) and answers[-1].status == 400 and answers[-1].body["message"] == NOT_HTTP
        )


def a_reset_took_answers(lane: Outcome, aiohttp: Outcome) -> bool:
    shorter, longer = sorted((lane.seen, aiohttp.seen), key=lambda seen: len(seen.answers))
    return shorter.was_reset and longer.answers[: len(shorter.answers)] == shorter.answers


def the_head_was_cut_off(lane: Outcome, aiohttp: Outcome) -> bool:
    before = aiohttp.seen.answers[:-1]
    return aiohttp.is_refused and before == lane.seen.answers and lane.job == aiohttp.job


# What may differ, and why. None of it lets the lane answer what aiohttp refuses.
EXPLAINED: Final[dict[str, Callable[[Outcome, Outcome], bool]]] = {
    "who closes without having read all that came resets the connection, "
    "and answers on their way are lost": a_reset_took_answers,
    "aiohttp refuses a head at its first bad byte, the lane waits for the end of it": the_head_was_cut_off,
}


class Ways:
    """A server with the lane, or with a fault in the lane, beside one that has only aiohttp."""

    def __init__(self, processes: Processes, store: StoreServer) -> None:
        self._processes = processes
        self._store = store
        self.aiohttp = self.server("tests.ways_in", "aiohttp")

    def server(self, *program: str) -> QueueServer:
        settings = self._store.settings(self._store.new_database())
        home = self._processes.home(program[-1])
        return self._processes.started(QueueServer(program[-1], home, settings, program=program))

    async def difference(
        self, lane: QueueServer, sent: Sequence[bytes], pause_s: float = 0
    ) -> tuple[Outcome, Outcome] | None:
        """Both outcomes, if they differ without a reason. A difference is tried again, with more time."""
        for quiet_s in TRIES:
            found, expected = await asyncio.gather(
                outcome(lane, sent, pause_s, quiet_s), outcome(self.aiohttp, sent, pause_s, quiet_s)
            )
            if found == expected or any(so(found, expected) for so in EXPLAINED.values()):
                return None
        return found, expected


async def outcome(
    server: QueueServer, sent: Sequence[bytes], pause_s: float, quiet_s: float
) -> Outcome:
    job = f"{next(NUMBERS):0{len(ID)}}"
    seen = await talk(server.port, with_id(sent, job), pause_s=pause_s, quiet_s=quiet_s)
    asked = last_request("of-its-own", job)
    return Outcome(seen, await talk(server.port, [asked], pause_s=0, quiet_s=10))


def with_id(sent: Sequence[bytes], job: str) -> list[bytes]:
    """The same pieces, with the job's id in its place."""
    whole, ends = b"".join(sent).replace(ID, job.encode()), [*itertools.accumulate(map(len, sent))]
    return [whole[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


@pytest.fixture(scope="module")
def ways(processes: Processes, redis_server: StoreServer) -> Ways:
    return Ways(processes, redis_server)


@pytest.fixture(scope="module")
def lane(ways: Ways) -> QueueServer:
    """A server as it is."""
    return ways.server("delayqueue")


@SETTINGS
@given(st.data())
def test_whatever_is_sent_both_ways_in_answer_the_same(
    ways: Ways, lane: QueueServer, data: st.DataObject
) -> None:
    stream = data.draw(streams()) + (last_request() if data.draw(st.booleans()) else b"")
    sent, pause_s = data.draw(pieces(stream)), data.draw(PAUSES_S)
    found = asyncio.run(ways.difference(lane, sent, pause_s))
    assert found is None, "\n".join(map(str, found))


GET: Final = b"POST /get HTTP/1.1\r\nHost: x\r\n"
BODY: Final = b'{"id":"-"}'
RIGHT: Final = b"Content-Length: 10\r\n"
PLAIN: Final = GET + RIGHT + b"\r\n" + BODY
CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
CHUNKS: Final = b"a\r\n" + BODY + b"\r\n0\r\n\r\n"
HIDDEN: Final = b"POST /push HTTP/1.1\r\nHost: x\r\nContent-Length: 63\r\n\r\n" + BODIES["/push"]
# What two servers in a row may take for different requests, and other shapes that have caused trouble.
SHAPES: Final = {
    "chunks beside a length": GET + RIGHT + CHUNKED + b"\r\n" + CHUNKS,
    "a length beside chunks": GET + CHUNKED + RIGHT + b"\r\n0\r\n\r\n" + HIDDEN,
    "a request within a longer body": GET + b"Content-Length: %d\r\n\r\n" % len(HIDDEN) + HIDDEN,
    "a request behind a shorter body": GET + b"Content-Length: 0\r\n\r\n" + HIDDEN,
    "the same length twice": GET + RIGHT * 2 + b"\r\n" + BODY,
    "two lengths": GET + RIGHT + b"Content-Length: 0\r\n\r\n" + BODY,
    "two lengths in one": GET + b"Content-Length: 10, 10\r\n\r\n" + BODY,
    "a length with a sign": GET + b"Content-Length: +10\r\n\r\n" + BODY,
    "a folded length": GET + b"Content-Length: 1\r\n 0\r\n\r\n" + BODY,
    "a blank before the colon": GET + b"Content-Length : 10\r\n\r\n" + BODY,
    "chunks behind a blank": GET + RIGHT + b"Transfer-Encoding : chunked\r\n\r\n" + CHUNKS,
    "chunks behind a bare line feed": GET
    + RIGHT
    + b"X: a\nTransfer-Encoding: chunked\r\n\r\n"
    + CHUNKS,
    "a bare line feed": GET.replace(b"x\r\n", b"x\n") + RIGHT + b"\r\n" + BODY,
    "bare line feeds": PLAIN.replace(b"\r", b""),
    "a bare carriage return": GET + b"X: a\rY: b\r\n" + RIGHT + b"\r\n" + BODY,
    "a NUL": GET + b"X: a\0\r\n" + RIGHT + b"\r\n" + BODY,
    "a folded header": GET + b"X: a\r\n b\r\n" + RIGHT + b"\r\n" + BODY,
    "a whole URL": PLAIN.replace(b"/get", b"http://y/get"),
    "an escape": PLAIN.replace(b"/get", b"/%67et"),
    "a query": PLAIN.replace(b"/get", b"/get?a=/push"),
    "no host": PLAIN.replace(b"Host: x\r\n", b""),
    "two hosts": PLAIN.replace(b"Host: x\r\n", b"Host: x\r\nHost: y\r\n"),
    "HTTP/1.0": PLAIN.replace(b"1.1", b"1.0"),
    "HTTP/1.0, kept": PLAIN.replace(b"1.1\r\n", b"1.0\r\nConnection: keep-alive\r\n"),
    "closes, and more comes": GET + b"Connection: close\r\n" + RIGHT + b"\r\n" + BODY + HIDDEN,
    "odd words for the connection": GET + b"Connection: close, x\r\n" + RIGHT + b"\r\n" + BODY,
    "a long head": GET + b"X: %b\r\n" % (b"a" * 9000) + RIGHT + b"\r\n" + BODY,
    "many headers": GET + b"".join(b"X%d: a\r\n" % n for n in range(500)) + RIGHT + b"\r\n" + BODY,
    "an empty line before": b"\r\n" + PLAIN,
    "an empty line after": PLAIN + b"\r\n" + PLAIN,
    "a body behind a HEAD": PLAIN.replace(b"POST", b"HEAD"),
    "a body behind an OPTIONS": PLAIN.replace(b"POST", b"OPTIONS"),
    "who waits to be told": GET + b"Expect: 100-continue\r\n" + RIGHT + b"\r\n" + BODY,
    "another protocol": GET + b"Connection: upgrade\r\nUpgrade: h2c\r\n" + RIGHT + b"\r\n" + BODY,
    "another protocol, as Java offers it": GET
    + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"
    + RIGHT
    + b"\r\n"
    + BODY,
    "another protocol that aiohttp knows": GET
    + b"Connection: upgrade\r\nUpgrade: websocket\r\n"
    + RIGHT
    + b"\r\n"
    + BODY,
    "another protocol, and a body of chunks": GET
    + b"Connection: upgrade\r\nUpgrade: h2c\r\n"
    + CHUNKED
    + b"\r\n"
    + CHUNKS,
    "as many header lines as there may be": GET
    + b"".join(b"X%d: a\r\n" % n for n in range(126))
    + RIGHT
    + b"\r\n"
    + BODY,
    "one header line too many": GET
    + b"".join(b"X%d: a\r\n" % n for n in range(127))
    + RIGHT
    + b"\r\n"
    + BODY,
    "HTTP/2.0": PLAIN.replace(b"1.1", b"2.0"),
    "HTTP/0.9": PLAIN.replace(b"1.1", b"0.9"),
    "compressed chunks": GET + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS,
    "half a head": GET,
    "half a body": PLAIN[:-3],
    "many in a row": PLAIN * 100,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_odd_shapes_are_answered_the_same(ways: Ways, lane: QueueServer, shape: str) -> None:
    for sent in ([SHAPES[shape]], [SHAPES[shape] + last_request()]):
        found = asyncio.run(ways.difference(lane, sent))
        assert found is None, "\n".join(map(str, found))


@pytest.mark.parametrize(
    ("fault", "shape"),
    [
        ("bare-line-feeds", "a bare line feed"),
        ("chunks-passed-over", "chunks beside a length"),
        ("expectations-passed-over", "who waits to be told"),
    ],
)
def test_a_fault_in_the_lane_would_be_found(ways: Ways, fault: str, shape: str) -> None:
    """This tests the tests above."""
    faulty = ways.server("tests.ways_in", fault)
    found = asyncio.run(ways.difference(faulty, [SHAPES[shape] + last_request()]))
    assert found is not None
