"""Which topics need attention."""

import pytest

from delayqueue.domain.limit import Limit
from delayqueue.store.census import TopicView
from delayqueue.web.endpoints.topics import LATE_MS, troubles

UNTIL_RESUMED = 0


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        (TopicView("t", delayed=9, reserved=2), []),
        (TopicView("t", buried=1), ["buried"]),
        (TopicView("t", ready=1, oldest_age_ms=LATE_MS - 1), []),
        (TopicView("t", ready=1, oldest_age_ms=LATE_MS), ["late"]),
        (TopicView("t", delayed=1, paused_until_ms=UNTIL_RESUMED), []),  # no poll waits
        (
            TopicView("t", ready=1, oldest_age_ms=LATE_MS, paused_until_ms=UNTIL_RESUMED),
            ["paused"],  # hence it is late
        ),
        (TopicView("t", buried=3, ready=1, oldest_age_ms=LATE_MS), ["buried", "late"]),
        (TopicView("t", limit=Limit(rate=1)), []),
    ],
)
def test_a_topic_in_trouble_says_why(topic: TopicView, why: list[str]) -> None:
    assert troubles(topic) == why
