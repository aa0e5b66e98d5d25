"""What becomes of a call that goes wrong: which errors let it be made again, and what its caller sees of the others."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import pytest
from redis.asyncio import BlockingConnectionPool, Redis

from delayqueue.config.values import Address
from delayqueue.domain.access import EVERYWHERE
from delayqueue.errors import Text, Unavailable
from delayqueue.store.bucket import OUTDATED
from delayqueue.store.buckets import Buckets
from delayqueue.store.durability import TRUST_S, Durability, Requirement, require_sync
from delayqueue.store.server import MOST_CALLS
from delayqueue.store.servers import SLOTS, Sentinels, Servers, Span
from delayqueue.store.store import Store
from delayqueue.store.verbs import DELETE, FINISH, Ending, Verb
from tests.processes import LOOPBACK
from tests.store.scripted import CUT, LOGIN, Server, answers
from tests.waiting import until

LONG_S: Final = 30.0
MANY: Final = 4 * MOST_CALLS
ANSWER_S: Final = 1.0  # where a server is silent
UNKNOWN_YET: Final = Text("布局未知", "its layout is unknown")
VERB: Final = "touch"
ENDING: Final = Ending("id", None, "")
NO_FUNCTIONS: Final = b"-ERR unknown command 'FCALL', with args beginning with: 'x'\r\n"
NOT_FOUND: Final = b"-ERR Function not found\r\n"
SILENCE: Final = b""  # no answer
HASHES: Final = {b"HGETALL": b"*0\r\n"}  # the layout that a store without data has


def late() -> bytes:
    return b"-LATE %d is the time here\r\n" % (time.time() * 1000)


def done() -> bytes:
    """The answer to a call that is done: nothing to tell."""
    return b"*6\r\n:%d\r\n:-1\r\n:0\r\n:0\r\n:0\r\n:0\r\n" % (time.time() * 1000)


class Scripted(Server):
    """It answers calls of verbs as it was told, and then with success. It remembers all commands."""

    def __init__(self, *answers: bytes) -> None:
        super().__init__(self._answer)
        self.answers = list(answers)
        self.silent_on: bytes | None = None  # this command
        self.heard: list[list[bytes]] = []

    @property
    def calls(self) -> list[bytes]:
        """What the verbs were called by: FCALL or EVALSHA."""
        return [name for name, *_ in self.heard if name in {b"FCALL", b"EVALSHA"}]

    @property
    def loads(self) -> int:
        """How often something was loaded."""
        return sum(words[0] in {b"FUNCTION", b"SCRIPT"} for words in self.heard)

    async def _answer(self, _connection: int, words: list[bytes]) -> bytes:
        if words[0] == LOGIN:
            return b"+OK\r\n"
        self.heard.append(words)
        if words[0] == self.silent_on:
            return SILENCE
        if words[0] in {b"FCALL", b"EVALSHA"}:
            return self.answers.pop(0) if self.answers else done()
        return HASHES.get(words[0], b"+OK\r\n")


class Bed(NamedTuple):
    """A store over one scripted server; a second one knows nothing."""

    server: Scripted
    other: Scripted
    store: Store
    reads: list[int]  # of the topology


class Told(Sentinels):
    """They name this server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reads: list[int] = []

    async def find(self) -> list[Span]:
        self.reads.append(self.port)
        return [Span(0, SLOTS - 1, Address(LOOPBACK, self.port))]


def client(address: Address) -> Redis:
    pool = BlockingConnectionPool(
        host=address.host,
        port=address.port,
        protocol=2,
        max_connections=9,
        timeout=ANSWER_S / 2,
        socket_timeout=LONG_S,  # to log in, too, on a busy machine
    )
    return Redis.from_pool(pool)


def is_connecting() -> bool:
    return any(task.get_name() == "connection to the store" for task in asyncio.all_tasks())


@asynccontextmanager
async def bed(
    *answers: bytes, answer_s: float = LONG_S, durability: Durability | None = None
) -> AsyncIterator[Bed]:
    async with Scripted(*answers).listening() as server, Scripted().listening() as other:
        told = Told(server.port)
        servers = Servers(told, client, client, await told.find(), answer_s)
        told.reads.clear()
        store = Store(servers, Buckets("b_%d", "q_%s"), durability=durability)
        yield Bed(server, other, store, told.reads)
        await until(lambda: not is_connecting())
        await servers.aclose()


async def outcome(store: Store, verb: str = VERB) -> type[BaseException] | None:
    """What the caller sees of a call: None = success."""
    try:
        await store.bucket(0).run(verb, [])
    except Unavailable as error:
        return type(error)
    return None


@pytest.mark.parametrize(
    ("answers", "calls", "loads"),
    [
        ((NOT_FOUND,), ["FCALL"] * 2, 1),
        ((NOT_FOUND,) * 3, ["FCALL"] * 4, 3),
        ((NO_FUNCTIONS,), ["FCALL", "EVALSHA"], 0),
        ((b"-NOPERM no\r\n",), ["FCALL", "EVALSHA"], 0),
        ((NO_FUNCTIONS, b"-NOSCRIPT no\r\n"), ["FCALL", "EVALSHA", "EVALSHA"], 1),
        ((late(),), ["FCALL"] * 2, 0),
        ((NOT_FOUND, late()), ["FCALL"] * 3, 1),
        ((late(), NOT_FOUND), ["FCALL"] * 3, 1),
        ((late(), NO_FUNCTIONS, b"-NOSCRIPT no\r\n"), ["FCALL"] * 2 + ["EVALSHA"] * 2, 1),
    ],
    ids=[
        "no library",
        "no library, three times",
        "no functions",
        "functions are forbidden",
        "neither functions nor the script",
        "an unknown clock",
        "no library, and an unknown clock",
        "an unknown clock, and no library",
        "an unknown clock, no functions, no script",
    ],
)
async def test_what_has_surely_not_been_done_is_done_again(
    answers: tuple[bytes, ...], calls: list[str], loads: int
) -> None:
    async with bed(*answers) as (server, _, store, reads):
        assert await outcome(store) is None
        assert [name.decode() for name in server.calls] == calls
        assert server.loads == loads
        assert store.ailment() is None
        assert reads == []


@pytest.mark.parametrize(
    ("answer", "ails"),
    [
        (b"-ERR planted\r\n", "it refuses calls; the log says more"),
        (b"-WRONGTYPE no\r\n", "it refuses calls; the log says more"),
        (b"-LOADING it\r\n", "it is loading its data"),
        (b"-READONLY it\r\n", "it is a read-only replica: name the master, or the Sentinels"),
        (b"-MASTERDOWN it\r\n", "it has lost its master"),
        (
            b"-OOM it\r\n",
            "its memory is full, so it takes no new jobs: raise `maxmemory` in its config, or end jobs",
        ),
        (b"-MISCONF it\r\n", "it cannot write to its disk: make room there, or see why in its log"),
        (b"-NOREPLICAS it\r\n", "too few replicas follow"),
        (b"-BUSY it\r\n", "it is busy with a script"),
        (b"-CLUSTERDOWN it\r\n", "no server of the Cluster holds a slot that is needed"),
        (b"-TRYAGAIN it\r\n", "the Cluster is moving a slot"),
        (b"-ASK 1 127.0.0.1:1\r\n", "the Cluster is moving a slot"),
        (SILENCE, "it does not answer"),
        (CUT, "it cannot be reached"),
        (b"?\r\n", "it cannot be reached"),
    ],
    ids=lambda value: value.decode().strip() or "silence" if isinstance(value, bytes) else "",
)
async def test_what_may_have_been_done_or_is_refused_is_not_done_again(
    answer: bytes, ails: str
) -> None:
    async with bed(answer, answer_s=LONG_S if answer else ANSWER_S) as (server, _, store, _reads):
        assert await outcome(store) is Unavailable
        assert len(server.calls) == 1
        found = store.ailment()
        assert found is not None
        assert found.en == ails
        assert await outcome(store) is None, "the next call goes on"
        assert store.ailment() is None


@pytest.mark.parametrize("answer", [b"-READONLY it\r\n", b"-MASTERDOWN it\r\n"])
async def test_a_replica_is_left_by_questions_too(answer: bytes) -> None:
    """Behind a name, a new connection reaches the master that has taken its place."""
    async with bed(answer) as (server, _, store, _reads):
        redis = store.servers.of("any key")
        await redis.echo("")
        assert await outcome(store) is Unavailable
        connections = server.connections
        await redis.echo("")
        assert server.connections == connections + 1


async def test_a_server_without_the_library_for_ever_is_given_up() -> None:
    async with bed(*[NOT_FOUND] * 99) as (server, _, store, _reads):
        assert await outcome(store) is Unavailable
        assert len(server.calls) < 10


@pytest.mark.parametrize("host", [LOOPBACK.encode(), b""], ids=["", "no host"])
async def test_a_call_follows_its_bucket_and_is_done_once(host: bytes) -> None:
    """Without a host, on the machine of the server that sends it: `cluster-preferred-endpoint-type`."""
    async with bed() as (server, other, store, _reads):
        slot = store.servers._slots.setdefault(store.buckets.keys[0].tag, 1)
        server.answers = [b"-MOVED %d %s:%d\r\n" % (slot, host, other.port)]
        changed = store.servers.changed
        assert await outcome(store) is None
        assert await outcome(store) is None
        assert (len(server.calls), len(other.calls)) == (1, 2)
        assert changed.is_set()


async def test_where_a_server_without_a_name_is_the_topology_tells() -> None:
    async with bed() as (server, other, store, reads):
        slot = store.servers._slots.setdefault(store.buckets.keys[0].tag, 1)
        server.answers = [b"-MOVED %d ?:%d\r\n" % (slot, server.port)]
        told: Any = store.servers._topology
        told.port = other.port
        assert await outcome(store) is None
        assert (len(server.calls), len(other.calls), reads) == (1, 1, [other.port])


async def test_many_calls_at_once_follow_their_bucket_and_each_is_done_once() -> None:
    async with bed() as (server, other, store, _reads):
        slot = store.servers._slots.setdefault(store.buckets.keys[0].tag, 1)
        server.answers = [b"-MOVED %d %s:%d\r\n" % (slot, LOOPBACK.encode(), other.port)] * MANY
        assert await asyncio.gather(*(outcome(store) for _ in range(MANY))) == [None] * MANY
        assert (len(server.calls), len(other.calls)) == (MANY, MANY)


async def test_many_calls_at_once_that_find_no_library_load_it_together() -> None:
    async with bed(*[NOT_FOUND] * MANY) as (server, _, store, _reads):
        assert await asyncio.gather(*(outcome(store) for _ in range(MANY))) == [None] * MANY
        assert len(server.calls) == 2 * MANY
        assert server.loads < MANY / 4, "for an exchange, not for each call"


async def test_servers_that_send_a_call_in_a_circle_are_given_up() -> None:
    async with bed() as (server, other, store, _reads):
        slot = store.servers._slots.setdefault(store.buckets.keys[0].tag, 1)
        server.answers, other.answers = (
            [b"-MOVED %d %s:%d\r\n" % (slot, LOOPBACK.encode(), target.port)] * 99
            for target in (other, server)
        )
        assert await outcome(store) is Unavailable
        assert len(server.calls) + len(other.calls) < 10
        found = store.ailment()
        assert found is not None
        assert found.en == "no server of the Cluster holds a slot that is needed"


async def test_after_a_silence_the_next_call_asks_first_where_the_bucket_is() -> None:
    async with bed(SILENCE, answer_s=ANSWER_S) as (server, _, store, reads):
        assert await outcome(store) is Unavailable
        assert reads == []
        assert await asyncio.gather(*(outcome(store) for _ in range(9))) == [None] * 9
        assert reads == [server.port], "once"


@pytest.mark.parametrize(
    ("answers", "silent_on"),
    [((), b"CONFIG"), ((NOT_FOUND,), b"FUNCTION")],
    ids=["how durable it is", "the library"],
)
async def test_a_silence_on_what_a_call_needs_is_one_of_the_server(
    answers: tuple[bytes, ...], silent_on: bytes
) -> None:
    fsync = Durability(Requirement(require_sync, TRUST_S))
    async with bed(*answers, answer_s=ANSWER_S, durability=fsync) as (server, _, store, reads):
        server.silent_on = silent_on
        verb = "push" if silent_on == b"CONFIG" else VERB
        assert await outcome(store, verb) is Unavailable
        assert store.bucket(0).is_away
        assert reads == []
        server.silent_on = None
        assert await outcome(store) is None
        assert reads == [server.port], "the next call asks first where the bucket is"


@pytest.mark.parametrize("answer", [CUT, b"-READONLY it\r\n"])
async def test_after_a_lost_connection_a_push_asks_again_how_durable_its_server_is(
    answer: bytes,
) -> None:
    """Another one may answer by then."""
    asked: list[object] = []

    async def note(redis: object) -> None:
        asked.append(redis)

    async with bed(answer, durability=Durability(Requirement(note, math.inf))) as (_, _, store, _):
        for expected in (Unavailable, None, None):
            assert await outcome(store, "push") is expected
    assert len(asked) == 1


async def test_a_stale_layout_closes_the_store_for_this_process() -> None:
    async with bed(b"-STALELAYOUT it\r\n") as (server, _, store, _reads):
        assert await outcome(store) is Unavailable
        assert store.ailment() is OUTDATED
        assert await outcome(store) is Unavailable
        assert len(server.calls) == 1


async def test_no_call_is_made_before_the_layout_is_known() -> None:
    async with bed() as (server, _, store, _reads):
        store.close(UNKNOWN_YET)
        assert await outcome(store) is Unavailable
        assert store.ailment() is UNKNOWN_YET
        store.open()
        assert await outcome(store) is None
        assert len(server.calls) == 1


async def test_calls_behind_a_silent_server_fail_within_the_time_of_a_call() -> None:
    """Some are sent, some wait for a connection, most wait for an exchange."""
    async with bed(*[SILENCE] * 999, answer_s=ANSWER_S) as (_, _, store, _reads):
        began_s = time.monotonic()
        found = await asyncio.gather(*(outcome(store) for _ in range(1000)))
        assert found == [Unavailable] * 1000
        assert time.monotonic() - began_s < 25 * ANSWER_S, "not one after the other: 1000 / 32"
        assert store.bucket(0).is_away


async def test_of_many_calls_those_that_were_not_sent_outlive_a_broken_connection() -> None:
    async with bed(CUT) as (server, _, store, _reads):
        found = await asyncio.gather(*(outcome(store) for _ in range(1000)))
        assert {Unavailable, None} == set(found)
        lost = found.count(Unavailable)
        assert lost <= 32, "an exchange"
        await until(lambda: len(server.calls) == 1000 - lost + 1)


async def test_a_call_that_is_cancelled_while_it_is_done_again_goes_no_further() -> None:
    answer_s = 4 * ANSWER_S  # it is made twice in this time, on a busy machine, too
    async with bed(NOT_FOUND, SILENCE, answer_s=answer_s) as (server, _, store, reads):
        call = asyncio.ensure_future(store.bucket(0).run(VERB, []))
        await until(lambda: len(server.calls) == 2)
        call.cancel()
        await asyncio.sleep(answer_s + ANSWER_S)
        assert call.cancelled()
        assert len(server.calls) == 2
        assert store.ailment() is None
        assert reads == [], "nobody blames the server"


async def cancelled_after(turns: int) -> bool:
    """Whether a call that has to be made three times had not ended after so many turns of the loop."""
    async with bed(NOT_FOUND, late()) as (_, _, store, reads):
        call = store.bucket(0).run(VERB, [])
        for _ in range(turns):
            await asyncio.sleep(0 if turns % 2 else 0.0005)
        was_cancelled = call.cancel()
        assert await answers(outcome(store)) == [None], "it takes nothing from the next one"
        assert store.ailment() is None
        assert reads == []
        return was_cancelled


async def test_a_call_may_be_cancelled_at_any_moment() -> None:
    turns = 0
    while await cancelled_after(turns):
        turns += 1
    assert turns > 1


def done_one(due_in_ms: int) -> bytes:
    """The answer to a call that has done an item, with code 0; something is due in so many ms."""
    return b"*7\r\n:%d\r\n:%d\r\n:1\r\n:1\r\n:0\r\n:0\r\n:0\r\n" % (time.time() * 1000, due_in_ms)


async def test_who_fails_at_the_news_of_a_call_takes_no_other_call_s_answer() -> None:
    """They come in one write, and are dealt out in one turn."""

    def fail(*_: int) -> None:
        raise LookupError("planted")

    async with bed(done_one(5), done_one(-1), done(), done_one(-1)) as (server, _, store, _reads):
        store.on_due(fail)
        news, other, alone = await answers(
            store.run(DELETE, [ENDING], EVERYWHERE),
            store.run(FINISH, [ENDING], EVERYWHERE),
            outcome(store),
        )
        assert isinstance(news, LookupError)
        assert (other, alone) == ([0], None)
        assert await answers(store.run(DELETE, [ENDING], EVERYWHERE)) == [[0]]
        assert len(server.calls) == 4


async def test_who_cannot_read_its_results_takes_nobody_else_s() -> None:
    def fail(_: Sequence[int]) -> None:
        raise LookupError("planted")

    both = done_one(-1).replace(b"*7", b"*8").replace(b":1\r\n:1\r\n", b":2\r\n:2\r\n") + b":0\r\n"
    async with bed(both) as (server, _, store, _reads):
        unread, other = await answers(
            store.run_then(DELETE, [ENDING], EVERYWHERE, fail),
            store.run(DELETE, [ENDING], EVERYWHERE),
        )
        assert isinstance(unread, LookupError)
        assert other == [0]
        assert len(server.calls) == 1


async def test_arguments_that_are_no_words_are_an_error_of_their_call() -> None:
    wrong = Verb[Ending, int]("delete", lambda _: [None], DELETE.read)
    async with bed(*[done_one(-1)] * 9) as (server, _, store, _reads):
        for _ in range(3):  # more often than calls are made at a time
            [refused] = await answers(store.run(wrong, [ENDING], EVERYWHERE))
            assert isinstance(refused, TypeError)
        assert server.calls == []


async def test_arguments_that_no_bytes_stand_for_are_an_error_of_their_call() -> None:
    async with bed() as (server, _, store, _reads):
        with pytest.raises(UnicodeEncodeError):
            await store.bucket(0).run(VERB, ["\ud800"])
        assert server.calls == []
        assert await outcome(store) is None
