"""What is counted of the calls to each host, and for how long."""

from contextlib import suppress
from dataclasses import asdict

from delayqueue.domain.call_counters import (
    MOST_ERROR_CHARS,
    MOST_HOSTS,
    MOST_REPORTED,
    MOST_UNTIL,
    CallCounters,
    HostReport,
    added_by_host,
)
from delayqueue.domain.written import read


class Clock:
    """A clock that the test sets."""

    now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


def test_calls_count_for_a_minute_and_the_last_failure_stays() -> None:
    clock = Clock()
    counters = CallCounters(10, clock, clock)
    counters.of("a").ended(0.5, None)
    counters.of("a").ended(1.5, "500 no" + "x" * 1000)
    counters.of("a").put_off(clock.now_s - 5, 0.5)
    error = ("500 no" + "x" * 1000)[:MOST_ERROR_CHARS]
    found = HostReport(
        "a",
        waiting=1,
        waiting_since=clock.now_s - 5,
        next_try=clock.now_s + 0.5,
        succeeded=1,
        failed=1,
        put_off=1,
        took_s=2.0,
        failed_at=clock.now_s,
        error=error,
        failing=1,
        succeeded_at=clock.now_s,
    )
    assert counters.report() == [found]
    clock.now_s += 49
    counters.of("a").ended(0.25, None)
    assert counters.report()[0].succeeded == 2
    clock.now_s += 12
    [later] = counters.report()
    assert (later.succeeded, later.failed, later.put_off, later.took_s) == (1, 0, 0, 0.25)
    assert (later.failed_at, later.error) == (found.failed_at, error)


def test_calls_under_way_are_counted_even_if_they_are_broken_off() -> None:
    counters = CallCounters(10)
    host = counters.of("a")
    with host.calling(), suppress(TimeoutError), counters.of("a").calling():
        assert counters.report()[0].calling == 2
        raise TimeoutError
    assert counters.report()[0].calling == 0


def test_of_many_hosts_those_with_the_latest_news_are_known_and_those_with_trouble_reported() -> (
    None
):
    counters = CallCounters(10)
    counters.of("old").ended(1, "gone")
    counters.of("bad").ended(1, "500")
    for number in range(MOST_HOSTS - 1):
        counters.of(f"h{number}").ended(1, None)
    reported = counters.report()
    assert len(reported) == MOST_REPORTED
    assert reported[0].host == "bad"
    assert "old" not in [one.host for one in reported]


def test_reports_of_several_processes_are_added_and_read_whatever_newer_ones_write() -> None:
    one = HostReport("a", 1, 5, 70.0, 95.0, 2, 3, 4, 5.0, 7.0, "later")
    other = HostReport("a", 1, 2, 60.0, 0, 1, 0, 0, 1.0, 6.0, "earlier")
    bad = HostReport("b", failed=19)
    found = added_by_host([other, one, bad])
    assert found == [bad, HostReport("a", 2, 7, 60.0, 95.0, 3, 3, 4, 6.0, 7.0, "later")]
    assert read(HostReport, asdict(one) | {"newer": 1}) == one


def test_who_waits_is_counted_until_it_is_tried_again() -> None:
    clock = Clock()
    counters, now_s = CallCounters(10, clock, clock), clock.now_s
    host = counters.of("a")
    for n in range(50):
        host.put_off(now_s - n, 1.0)
    host.put_off(now_s - 100, 3000)
    with host.waiting(now_s - 7):
        [told] = counters.report()
        assert (told.waiting, told.waiting_since, told.next_try) == (52, now_s - 100, now_s + 1)
        clock.now_s += 2
        [told] = counters.report()
        assert (told.waiting, told.waiting_since) == (2, now_s - 100)
        assert now_s + 3000 <= told.next_try <= now_s + 3010
        clock.now_s += 3010
        [told] = counters.report()
        assert (told.waiting, told.waiting_since, told.next_try) == (1, now_s - 7, 0)
    [told] = counters.report()
    assert (told.waiting, told.waiting_since, told.next_try) == (0, 0, 0)


def test_a_machine_whose_clock_is_put_back_tells_nothing_for_longer() -> None:
    clock, unix = Clock(), Clock()
    counters = CallCounters(10, clock, unix)
    counters.of("a").ended(1.0, "500")
    counters.of("a").put_off(unix.now_s, 5.0)
    assert counters.report()[0].next_try == unix.now_s + 5
    unix.now_s -= 3600
    clock.now_s += 70
    [told] = counters.report()
    assert (told.failed, told.put_off, told.waiting, told.took_s) == (0, 0, 0, 0)
    assert told.failed_at == unix.now_s - 70


def test_however_many_wait_little_is_kept_of_them() -> None:
    clock = Clock()
    host = CallCounters(10, clock, clock).of("a")
    for n in range(100_000):
        clock.now_s += 0.01
        host.put_off(clock.now_s, 1 + n % 3600)
    assert len(host._put_off) <= MOST_UNTIL + 1
    assert 30_000 < host.report().waiting < 100_000


def test_that_no_call_succeeds_is_told_between_the_retries_too() -> None:
    """They can be hours apart; another process's success ends it as well."""
    clock = Clock()
    counters, other = CallCounters(10, clock, clock), CallCounters(10, clock, clock)
    counters.of("a").ended(0.1, None)
    assert not counters.report()[0].fails
    for failing in (1, 2, 3):
        clock.now_s += 900
        counters.of("a").ended(0.1, "no answer")
        clock.now_s += 300
        [one] = counters.report()
        assert (one.failed, one.failing, one.fails) == (0, failing, True)
    other.of("a").ended(0.1, "no answer")
    [both] = added_by_host([*counters.report(), *other.report()])
    assert (both.failing, both.fails) == (4, True)
    clock.now_s += 1
    other.of("a").ended(0.1, None)
    for reports in ([*counters.report(), *other.report()], [*other.report(), *counters.report()]):
        assert not added_by_host(reports)[0].fails
    clock.now_s += 3600
    assert not counters.report()[0].fails
