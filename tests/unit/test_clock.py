"""What answers tell of the store's clock, and until when a call may then be done."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from delayqueue.config.values import Address
from delayqueue.store.server import ANSWER_S, Clock, told_by
from delayqueue.store.servers import SLOTS, Servers, Span
from faults.checker import SETTLED_S

HOUR_S: Final = 3600
AHEAD_S: Final = 1.7e9  # the store's clock shows the time of day, the loop's that since the start
MOMENTS_S: Final = st.floats(0, ANSWER_S)


def shown_ms(loop_s: float, ahead_s: float) -> int:
    """What the store's clock shows at that time of the loop: whole milliseconds."""
    return int((loop_s + ahead_s) * 1000)


def test_without_an_answer_every_time_is_long_ago() -> None:
    assert Clock().at_ms(1e6) == 0


@settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # a busy machine stops a test anywhere
@given(
    calls=st.lists(st.tuples(MOMENTS_S, MOMENTS_S), min_size=1),
    left_s=MOMENTS_S,
    ahead_s=st.floats(-AHEAD_S / 2, 2 * AHEAD_S),
)
def test_no_call_is_refused_that_is_on_time_and_none_is_done_longer_after_than_an_answer_takes(
    calls: Sequence[tuple[float, float]], left_s: float, ahead_s: float
) -> None:
    """Each call: how long after the one before it was made, and how long it took to reach the store."""
    clock, at_s = Clock(), 1000.0
    for pause_s, way_s in calls:
        at_s += pause_s
        clock.heard(shown_ms(at_s + way_s, ahead_s), at_s)
    until_s = at_s + left_s
    assert clock.at_ms(until_s) >= shown_ms(until_s, ahead_s) - 1, "a float has some digits"
    assert clock.at_ms(until_s) <= shown_ms(until_s + way_s, ahead_s) + 2


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S])
def test_the_next_answer_tells_of_a_step_and_it_is_logged(
    step_s: int, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    clock.heard(shown_ms(1, AHEAD_S), 1)
    clock.heard(shown_ms(2, AHEAD_S + step_s), 2)
    clock.heard(shown_ms(3, AHEAD_S + step_s), 3)
    assert clock.at_ms(4) == pytest.approx(shown_ms(4, AHEAD_S + step_s), abs=2)
    assert [record.getMessage() for record in caplog.records] == [
        f"the store's clock has jumped by {step_s:+.1f} s"
    ]


async def test_a_server_whose_clock_differs_from_that_of_its_former_one_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As after a failover to a machine with a wrong clock."""
    left = [Address("one", 6379), Address("other", 6379)]

    async def find() -> list[Span]:
        return [Span(0, SLOTS - 1, left.pop(0))]

    topology: Any = SimpleNamespace(find=find)
    servers = Servers(topology, lambda _: Redis(), lambda _: Redis(), await find())
    (await servers.reach("key")).clock.heard(shown_ms(1, AHEAD_S), 1)
    await servers.refresh()
    (await servers.reach("key")).clock.heard(shown_ms(2, AHEAD_S - 30), 2)
    assert "the store's clock has jumped by -30.0 s" in caplog.messages


def test_the_sleep_of_this_machine_is_no_step_of_the_stores_clock(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A laptop that was closed for an hour: its loop's clock has stood still."""
    asleep_s = [60.0, 60.0 + HOUR_S]
    clock = Clock(asleep=lambda: asleep_s.pop(0))
    clock.heard(shown_ms(1, AHEAD_S), 1)
    clock.heard(shown_ms(2, AHEAD_S + HOUR_S), 2)
    assert clock.at_ms(4) == pytest.approx(shown_ms(4, AHEAD_S + HOUR_S), abs=2)
    assert clock.jumps == 0
    assert not caplog.records


def test_slow_answers_look_like_no_step(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    for way_s in (0, ANSWER_S, 0, ANSWER_S):
        clock.heard(shown_ms(1 + way_s, AHEAD_S), 1)
    assert not caplog.records


def test_what_a_503_leaves_open_is_settled_when_the_pages_say() -> None:
    """A call has ANSWER_S, and what is known of the clock can be wrong by as much."""
    assert 2 * ANSWER_S == SETTLED_S


def test_a_refusal_tells_the_time_and_other_errors_do_not() -> None:
    assert told_by(ResponseError("LATE 1700000000123 is the time here")) == 1_700_000_000_123
    assert told_by(ResponseError("STALELAYOUT of 17")) is None
    assert told_by(ResponseError("")) is None
