"""Connections that break, hang and come late, at random and at each byte: calls end once, and no place is lost."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest
import uvloop
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.store import server as module
from delayqueue.store.connection import Links, Wait
from delayqueue.store.server import MOST_ATTEMPTS, Pipeline
from tests.store.scripted import CUT, LOGIN, PLACES, SECONDS, Call, answers, links_to, made
from tests.waiting import until, until_async

SHORT_S: Final = 0.15  # that calls have in the random runs
OVERTAKEN_S: Final = 0.02
BURSTS, BURST = 12, 12
WAIT: Final = Wait(1, 50)
loops = pytest.mark.parametrize("run", [asyncio.run, uvloop.run])

Run = Callable[[Coroutine[Any, Any, None]], None]


class Chance:
    """A server at its worst: it counts what it does, and is gentle once `is_wild` is False."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.is_wild = True
        self.done = Counter[bytes]()

    async def say(self, _connection: int, words: list[bytes]) -> bytes:
        what = self._choice(words[0])
        if what == "ends":
            return CUT
        if what == "silent":
            await asyncio.sleep(SECONDS)
        if words[0] == b"DO":
            self.done[words[1]] += 1
        if what == "late":
            await asyncio.sleep(self.random.choice([0.5, 1, 2, 10]) * OVERTAKEN_S)
        if what == "done and ends":
            return CUT
        return self._answer(words, is_refused=what == "refuses")

    def _choice(self, command: bytes) -> str:
        weights = (2, 4, 2, 1, 2) if command == LOGIN else (1, 1, 4, 2, 3)
        ways = ("ends", "silent", "late", "done and ends", "refuses")
        return self.random.choices((*ways, ""), (*weights, 80))[0] if self.is_wild else ""

    async def try_out(self, way: Pipeline, name: bytes) -> None:
        """Make a call, and prove that it ends, with what it has done."""
        asked = made(way, b"DO", name)
        if self.random.random() < 0.2:
            when_s = self.random.choice([0, 0.001, OVERTAKEN_S, 3 * OVERTAKEN_S])
            asyncio.get_running_loop().call_later(when_s, asked.cancel)
        [answer] = await answers(asked)
        if isinstance(answer, bytes):
            assert answer == name
            assert self.done[name] == 1
        else:
            assert isinstance(answer, RedisError | asyncio.CancelledError), answer

    @staticmethod
    def _answer(words: list[bytes], *, is_refused: bool) -> bytes:
        if words[0] == b"WAIT":
            return b":%d\r\n" % (not is_refused)
        if is_refused:
            return b"-ERR no\r\n"
        if words[0] == b"DO":
            return b"$%d\r\n%s\r\n" % (len(words[1]), words[1])
        return b"+OK\r\n"


async def is_answered(way: Pipeline) -> bool:
    [answer] = await answers(made(way, b"PING"))
    return bool(answer == b"OK")


async def is_taken(links: Links) -> bool:
    """Whether a connection was made in time. Raises RedisConnectionError if there is no place for one."""
    try:
        await links.take()
    except RedisTimeoutError:
        return False
    return True


@loops
@pytest.mark.parametrize("seed", range(6))
def test_whatever_breaks_each_call_ends_with_its_own_answer_and_no_place_is_lost(
    run: Run, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OVERTAKEN_S", OVERTAKEN_S)
    monkeypatch.setattr(module, "ANSWER_S", SHORT_S)
    chance = Chance(seed)

    async def torment() -> None:
        timeouts: dict[str, Any] = {"socket_timeout": SHORT_S, "socket_connect_timeout": SHORT_S}
        async with links_to(chance.say, wait_s=SHORT_S / 2, **timeouts) as (links, _):
            ways = [Pipeline(links, None, SHORT_S), Pipeline(links, WAIT, SHORT_S)]
            for burst in range(BURSTS):
                calls = [(ways[n % len(ways)], b"%d/%d" % (burst, n)) for n in range(BURST)]
                await asyncio.gather(*(chance.try_out(*call) for call in calls))
            assert set(chance.done.values()) == {1}, "nothing is sent twice"
            chance.is_wild = False
            for way in ways:
                await until_async(lambda way=way: is_answered(way))  # type: ignore[misc]
            await until(
                lambda: not any(way._busy or way._overtaken or way._attempts for way in ways)
            )
            for _ in range(PLACES - 4):  # all places but those of the pipelines
                await until_async(lambda: is_taken(links))

    run(torment())


ONE, NO, TWO, ENOUGH = b"$3\r\none\r\n", b"-ERR no\r\n", b":2\r\n", b":1\r\n"


@pytest.mark.parametrize("size", range(len(ONE + NO + TWO + ENOUGH)))
async def test_without_the_end_of_wait_no_call_is_done_but_a_refusal_is_one(size: int) -> None:
    heard = b""

    async def say(connection: int, words: list[bytes]) -> bytes:
        nonlocal heard
        if words[0] == LOGIN:
            return b"+OK\r\n"
        if connection:
            return b":1\r\n" if words[0] == b"WAIT" else b"+again\r\n"
        heard += words[0]
        if words[0] != b"WAIT":
            return b""
        return (ONE + NO + TWO + ENOUGH)[:size] + CUT

    async with links_to(say, most=2) as (links, _):
        way = Pipeline(links, WAIT)
        one, no, two = await answers(*(made(way, b"DO") for _ in range(3)))
        assert isinstance(one, RedisConnectionError)
        assert isinstance(two, RedisConnectionError)
        # what was refused is known not to be done, so it may be done again
        refused = size >= len(ONE + NO)
        assert isinstance(no, ResponseError if refused else RedisConnectionError)
        assert await answers(made(way, b"DO")) == [b"again"]
    assert heard == b"DODODOWAIT"


async def test_an_overtaken_connection_goes_on_while_no_other_can_be_made() -> None:
    """As with a firewall that knows the connections that are, and takes no new ones."""
    begun, release = asyncio.Event(), asyncio.Event()

    async def say(connection: int, words: list[bytes]) -> bytes:
        if connection:
            await asyncio.sleep(SECONDS)
        if words[0] == b"SLOW":
            begun.set()
            await release.wait()
        return b"+OK\r\n"

    async with links_to(say) as (links, server):
        way = Pipeline(links)
        slow = made(way, "SLOW")
        await begun.wait()
        await until(lambda: not way._busy)  # it is overtaken
        later = made(way, "PING")
        await until(lambda: server.connections == 1 + MOST_ATTEMPTS)
        release.set()
        assert await answers(slow, later) == [b"OK", b"OK"]
        assert way._attempts == MOST_ATTEMPTS, "they hang"
        await way.aclose()


async def test_a_call_after_the_end_fails_at_once_though_a_connection_was_being_made() -> None:
    async def say(_connection: int, _words: list[bytes]) -> bytes:
        await asyncio.sleep(SECONDS)
        return b""

    async with links_to(say) as (links, server):
        way = Pipeline(links, answer_s=10 * SECONDS)
        waiting = made(way, "PING")
        await until(lambda: server.connections > 0)
        await way.aclose()
        await links.aclose()
        for call in (waiting, made(way, "PING")):
            [gone] = await answers(call)
            assert isinstance(gone, RedisConnectionError), gone


class Chain(Call):
    """A call whose end makes the next one at once, as a listener of the store may."""

    def __init__(self, way: Pipeline, left: int) -> None:
        super().__init__("PING")
        self.last: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._way = way
        self._left = left
        way.send(self)

    def answered(self, answer: Any) -> None:
        super().answered(answer)
        self._go_on()

    def failed(self, error: Exception) -> None:
        super().failed(error)
        self.exception()
        self._go_on()

    def _go_on(self) -> None:
        if self._left:
            Chain(self._way, self._left - 1).last = self.last
        else:
            self.last.set_result(None)


@pytest.mark.parametrize("said", [b"+OK\r\n", CUT], ids=["answered", "broken"])
async def test_calls_may_be_made_while_answers_are_dealt_out(said: bytes) -> None:
    async def say(_connection: int, words: list[bytes]) -> bytes:
        return b"+OK\r\n" if words[0] == LOGIN else said

    async with links_to(say) as (links, _):
        way = Pipeline(links)
        chains = [Chain(way, 100) for _ in range(3)]
        assert await answers(*(chain.last for chain in chains)) == [None] * 3
        assert len({*[await links.take() for _ in range(PLACES - 1)]}) == PLACES - 1


async def test_calls_wait_for_a_sound_connection_while_another_one_cannot_be_made() -> None:
    """A second one would let two exchanges go on at a time; that it is missing costs nobody an answer."""
    release = asyncio.Event()

    async def say(connection: int, words: list[bytes]) -> bytes:
        if connection:
            await asyncio.sleep(SECONDS)
        if words[0] == b"SLOW":
            await release.wait()
        return b"+OK\r\n"

    async with links_to(say) as (links, server):
        way = Pipeline(links)
        assert await answers(made(way, "PING")) == [b"OK"]
        slow = made(way, "SLOW")
        await until(lambda: bool(way._busy))
        later = made(way, "PING")
        await until(lambda: server.connections > 1)
        release.set()
        assert await answers(slow, later) == [b"OK", b"OK"]
        assert await answers(made(way, "PING")) == [b"OK"]
        await way.aclose()
