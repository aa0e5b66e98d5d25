"""The log of failed calls: a line a minute for a subscriber and host, however many fail."""

import logging

import pytest

from delayqueue.delivery import failure_log
from delayqueue.delivery.failure_log import EVERY_S, FailureLog
from delayqueue.delivery.outcome import WebhookOutcome
from delayqueue.domain.subscriber import Subscriber
from delayqueue.store.types import Recording


class Log:
    """What a FailureLog writes, with a clock that the test sets."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.WARNING)
        self.now_s = 0.0
        self._caplog = caplog
        self._log = FailureLog(lambda: self.now_s)

    def fail(self, url: str, *, name: str = "call", status: int = 0) -> str:
        """The line of a call that fails; "" if there is none."""
        self._caplog.clear()
        subscriber = Subscriber(name=name, topic="t", url=url)
        recording = Recording("j", "n", name, False, "timeout: 30 s", 1, 5, None)
        self._log.failed(subscriber, "t", recording, WebhookOutcome(False, "", status=status))
        return "\n".join(self._caplog.messages)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Log:
    return Log(caplog)


def test_a_host_has_a_line_a_minute_which_counts_those_in_between(log: Log) -> None:
    said = "subscriber 'call' failed with job 'j' of topic 't', attempt 1, at dead.example:443: "
    assert log.fail("https://dead.example/a") == f"{said}timeout: 30 s"
    for n in range(358):
        log.now_s = n / 10
        assert log.fail(f"https://Dead.example:443/{n}", status=500) == ""
    log.now_s = EVERY_S
    assert (
        log.fail("https://dead.example/a", status=502)
        == f"{said}HTTP status 502; 358 more failed there since the last such line"
    )
    log.now_s = 2 * EVERY_S
    assert log.fail("https://dead.example/a") == f"{said}timeout: 30 s"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://dead.example:8080/", "call"),
        ("http://alive.example/", "call"),
        ("http://dead.example/", "another"),
    ],
)
def test_another_port_host_or_subscriber_has_a_line_of_its_own(
    log: Log, url: str, name: str
) -> None:
    assert log.fail("http://dead.example/")
    assert log.fail(url, name=name)


def test_what_has_no_host_has_a_line_too(log: Log) -> None:
    assert ", at " not in log.fail("http://a\\b/")
    assert log.fail("http://c\\d/") == ""


def test_of_many_hosts_few_are_remembered(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_log, "MOST", 2)
    for host in "abc":
        assert log.fail(f"http://{host}/")
    assert (log.fail("http://c/"), log.fail("http://b/")) == ("", "")
    assert log.fail("http://a/")
