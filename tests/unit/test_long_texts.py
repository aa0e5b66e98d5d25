"""Texts of megabytes instead of a few characters are refused before anybody has to wait."""

from collections.abc import Callable
from time import thread_time
from typing import Final

import pytest

from delayqueue.domain.retry import duration_ms
from delayqueue.domain.schedule import check_cron, check_tz
from delayqueue.domain.subscriber import check_secret, check_url
from delayqueue.errors import BadValue
from delayqueue.web.fields import (
    MAX_POP_CHARS,
    check_id,
    check_pop_topics,
    check_topic,
    check_traceparent,
    one_of,
)

CHARS: Final = 7_000_000
MOST_S: Final = 20.0  # processor time; work that is quadratic in this length takes hours


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (check_pop_topics, ","),
        (check_pop_topics, "a,"),
        (check_id, "9"),
        (check_topic, "排"),
        (check_topic, " "),
        (check_traceparent, "0"),
        (one_of("a")._check, "a"),
        (duration_ms, "9"),
        (duration_ms, " "),
        (check_cron, "1,"),
        (check_cron, " "),
        (check_tz, "A"),
        (check_tz, "A/"),
        (check_url, "http://a."),
        (check_secret, "whsec_"),
    ],
    ids=lambda part: getattr(part, "__name__", part),
)
def test_a_text_of_megabytes_is_refused_at_once(check: Callable[[str], object], text: str) -> None:
    huge = text * (CHARS // len(text))
    began_s = thread_time()
    with pytest.raises(BadValue):
        check(huge)
    assert thread_time() - began_s < MOST_S


def test_a_pop_may_name_64_topics_of_256_bytes_with_blanks_between() -> None:
    topics = tuple(f"{n:02}" + "x" * 254 for n in range(64))
    text = ", ".join(topics)
    assert check_pop_topics(text) == topics
    assert len(text) <= MAX_POP_CHARS
