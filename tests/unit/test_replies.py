"""What the answer of a script says beside its results."""

import pytest

from delayqueue.store.call import read_reply
from delayqueue.store.types import SOON_MS, Arrivals


@pytest.mark.parametrize(
    ("next_due_ms", "ready", "is_news"),
    [
        (-1, [], False),
        (0, [], True),
        (SOON_MS - 1, [], True),
        (SOON_MS, [], False),  # the timer ticks then anyway
        (-1, [("t", 1)], True),
        (SOON_MS, [("t", 1)], True),
    ],
)
def test_polls_and_timers_are_told_of_what_is_ready_or_soon_due(
    next_due_ms: int, ready: Arrivals, *, is_news: bool
) -> None:
    arrivals = [part for topic, count in ready for part in (str(topic).encode(), count)]
    reply = read_reply([1, next_due_ms, 1, 0, 0, len(ready), *arrivals])
    assert reply.change == (ready, None if next_due_ms < 0 else next_due_ms, is_news)
