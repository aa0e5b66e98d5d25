"""What is remembered of what relays tell, how much, and for how long."""

from dataclasses import asdict, replace

from delayqueue.domain.outboxes import (
    FORGOTTEN_S,
    MOST_OUTBOXES,
    Outbox,
    Outboxes,
)
from delayqueue.domain.written import read
from delayqueue.engine.reports import SILENT, ServerReport, outboxes


class Clock:
    """A clock that the test sets."""

    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def test_the_latest_word_counts_for_an_hour() -> None:
    clock = Clock()
    heard = Outboxes(clock)
    heard.note(Outbox("a", failed=1))
    clock.now_s += 5
    heard.note(Outbox("a", failed=2, reason="no"))
    clock.now_s += FORGOTTEN_S
    assert list(heard.report()) == [Outbox("a", 2, "no", ago_s=FORGOTTEN_S)]
    clock.now_s += 1
    assert list(heard.report()) == []


def test_of_too_many_those_that_were_heard_last_stay() -> None:
    heard = Outboxes()
    for number in range(MOST_OUTBOXES):
        heard.note(Outbox(str(number)))
    heard.note(Outbox("0"))
    heard.note(Outbox("one more"))
    names = [one.name for one in heard.report()]
    assert names == [*map(str, range(2, MOST_OUTBOXES)), "0", "one more"]


def test_of_several_servers_the_latest_word_counts_and_failed_rows_come_first() -> None:
    well, old, new = Outbox("a", ago_s=1.0), Outbox("b", failed=7, ago_s=3.0), Outbox("b", failed=1)
    reports = [
        ServerReport(replace(SILENT, seen=seen), outboxes=told)
        for seen, told in ((10.0, (well, old)), (8.0, (new,)))
    ]
    assert [(one.name, one.failed, one.seen) for one in outboxes(reports)] == [
        ("b", 1, 8.0),
        ("a", 0, 9.0),
    ]


def test_what_a_newer_server_wrote_is_read() -> None:
    one = Outbox("a", 1, "no", 0.5, 2.0)
    assert read(Outbox, asdict(one) | {"newer": 1}) == one
    assert read(Outbox, {"name": "a"}) == replace(one, failed=0, reason="", oldest_s=0, ago_s=0)
