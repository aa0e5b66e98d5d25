"""Why a job was buried, in words that are the same for the same cause."""

from time import thread_time

import pytest

from delayqueue.web.endpoints.dead_letters import MAX_REASON_CHARS, reason_of

TRACEBACK = """\
Traceback (most recent call last):
  File "/app/worker.py", line 42, in handle
    charge(order)
ValueError: order 1234567 is not paid
"""


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("", ""),
        ("\n  \n", ""),
        ("card declined", "card declined"),
        ("HTTP 503 after 30 s", "HTTP 503 after 30 s"),  # a status and a length say what it was
        ("order 10017 is unknown", "order # is unknown"),
        ("no user 6ba7b810-9dad-11d1-80b4-00c04fd430c8", "no user #"),
        ("trace 3f9c1e7a2b60 ended", "trace # ended"),
        ("the facade decayed", "the facade decayed"),  # letters of hexadecimal digits only
        ("deadbeef-cafe failed", "deadbeef-cafe failed"),
        ("job deadbeef-cafe-7", "job #"),
        ("\n first line\nsecond", "first line"),
        (TRACEBACK, "ValueError: order # is not paid"),
        ("订单 20231 不存在", "订单 # 不存在"),
        ("订单3f9c1e7a2b60不存在", "订单#不存在"),  # Chinese has no spaces around it
        ("no row order_3f9c1e7a2b60", "no row order_#"),
        ("<Order object at 0x7f3a5c1e2b60> is closed", "<Order object at #> is closed"),
        ("x" * 1000, "x" * MAX_REASON_CHARS),
    ],
)
def test_a_reason_is_the_line_that_says_it_without_what_differs(message: str, reason: str) -> None:
    assert reason_of(message) == reason


@pytest.mark.parametrize("part", ["a-", "-a", "abcdefab-", "abcdefab_"])
def test_a_reason_takes_time_in_proportion_to_the_message(part: str) -> None:
    """Its square would be 2 s for this one, and 4 s for 500 dead letters, in which no other request is answered."""
    message = part * (16_000 // len(part)) + "zz"
    began_s = thread_time()
    assert reason_of(message) == message[:MAX_REASON_CHARS]
    assert thread_time() - began_s < 0.5
