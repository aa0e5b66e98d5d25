"""Who is refused if incomplete requests take too much memory together: whose memory times age is greatest."""

import asyncio
from collections.abc import Callable
from typing import Final

import pytest

from delayqueue.metrics import REFUSED, Metrics
from delayqueue.net.unanswered import SMALL_BYTES, Unanswered

MIB: Final = 1 << 20
Passing = Callable[[float], None]  # of seconds


class Client:
    """A connection that can be refused, unless its request `is_complete`."""

    def __init__(self, unanswered: Unanswered, *, is_complete: bool = False) -> None:
        self._unanswered = unanswered
        self._is_complete = is_complete
        self.is_refused = False

    def has_sent(self, size_bytes: int) -> "Client":
        self._unanswered.note_held(self, size_bytes)
        return self

    def give_up(self) -> bool:
        if self._is_complete:
            return False
        self.is_refused = True
        self._unanswered.note_held(self, 0)
        return True


@pytest.fixture
async def pass_s(monkeypatch: pytest.MonkeyPatch) -> Passing:
    """Moves the loop's clock, which stands still meanwhile."""
    loop = asyncio.get_running_loop()

    def move(seconds: float) -> None:
        now_s = loop.time() + seconds
        monkeypatch.setattr(loop, "time", lambda: now_s)

    move(0)
    return move


async def test_within_the_limit_nobody_is_refused() -> None:
    unanswered = Unanswered(10 * MIB, Metrics())
    clients = [Client(unanswered).has_sent(MIB) for _ in range(10)]
    assert not any(each.is_refused for each in clients)
    assert unanswered.bytes == 10 * MIB


async def test_who_has_held_much_for_long_is_refused_before_who_has_just_come(
    pass_s: Passing,
) -> None:
    unanswered = Unanswered(10 * MIB, Metrics())
    stalled = [Client(unanswered).has_sent(MIB) for _ in range(8)]
    pass_s(0.05)
    new = Client(unanswered).has_sent(5 * MIB)
    assert not new.is_refused
    assert 0 < sum(each.is_refused for each in stalled) < len(stalled)
    assert unanswered.bytes <= 10 * MIB


async def test_who_holds_little_for_long_stays_beside_who_holds_much(
    pass_s: Passing,
) -> None:
    unanswered = Unanswered(10 * MIB, Metrics())
    little = Client(unanswered).has_sent(2 * SMALL_BYTES)
    pass_s(0.05)
    much = Client(unanswered).has_sent(9 * MIB)
    pass_s(0.05)
    Client(unanswered).has_sent(2 * MIB)
    assert (little.is_refused, much.is_refused) == (False, True)


async def test_a_request_that_is_there_as_a_whole_is_never_refused(
    pass_s: Passing,
) -> None:
    unanswered = Unanswered(10 * MIB, Metrics())
    whole = [Client(unanswered, is_complete=True).has_sent(5 * MIB) for _ in range(2)]
    pass_s(0.05)
    new = Client(unanswered).has_sent(MIB)
    assert new.is_refused
    assert not any(each.is_refused for each in whole)


async def test_small_requests_are_neither_counted_nor_refused() -> None:
    unanswered = Unanswered(MIB, Metrics())
    clients = [Client(unanswered).has_sent(SMALL_BYTES) for _ in range(1000)]
    assert unanswered.bytes == 0
    assert not any(each.is_refused for each in clients)


async def test_what_has_been_answered_counts_no_more() -> None:
    metrics = Metrics()
    unanswered = Unanswered(10 * MIB, metrics)
    for _ in range(20):
        client = Client(unanswered).has_sent(8 * MIB).has_sent(9 * MIB).has_sent(MIB)
        unanswered.forget(client)
    assert unanswered.bytes == 0
    refused = metrics.snapshot()[REFUSED.name]
    assert [["unanswered"], 0] in refused
