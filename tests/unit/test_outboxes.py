"""What is remembered of what relays tell, how much, and for how long."""

from dataclasses import asdict, replace

from delayqueue.domain.outboxes import (
    FORGOTTEN_S,
    MOST_OUTBOXES,
    Outbox,
    Outboxes,
    Seen,
    latest,
)


class Clock:
    """A clock that the test sets."""

    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def test_the_latest_word_counts_for_an_hour() -> None:
    clock = Clock()
    outboxes = Outboxes(clock)
    outboxes.tell(Outbox("a", failed=1))
    clock.now_s += 5
    outboxes.tell(Outbox("a", failed=2, reason="no"))
    clock.now_s += FORGOTTEN_S
    assert list(outboxes.report()) == [Outbox("a", 2, "no", ago_s=FORGOTTEN_S)]
    clock.now_s += 1
    assert list(outboxes.report()) == []


def test_of_too_many_those_that_were_heard_last_stay() -> None:
    outboxes = Outboxes()
    for number in range(MOST_OUTBOXES):
        outboxes.tell(Outbox(str(number)))
    outboxes.tell(Outbox("0"))
    outboxes.tell(Outbox("one more"))
    names = [one.name for one in outboxes.report()]
    assert names == [*map(str, range(2, MOST_OUTBOXES)), "0", "one more"]


def test_of_several_servers_the_latest_word_counts_and_failed_rows_come_first() -> None:
    well, old, new = Outbox("a"), Outbox("b", failed=7), Outbox("b", failed=1)
    found = latest([Seen(9.0, well), Seen(8.0, new), Seen(7.0, old)])
    assert found == [(8.0, new), (9.0, well)]


def test_what_a_newer_server_wrote_is_read() -> None:
    one = Outbox("a", 1, "no", 0.5, 2.0)
    assert Outbox.read(asdict(one) | {"newer": 1}) == one
    assert Outbox.read({"name": "a"}) == replace(one, failed=0, reason="", oldest_s=0, ago_s=0)
