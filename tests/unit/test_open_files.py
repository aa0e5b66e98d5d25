"""How many connections a process can have is what it may open; when nothing can be opened, it says so."""

import errno
import os
import resource
from typing import Any

import pytest

from delayqueue.config.startup import StartupError
from delayqueue.metrics import REFUSED, Metrics
from delayqueue.server.open_files import NOT_COUNTED, OpenFiles, most_connections, raise_limit


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The limit of open files."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (request.param, request.param))


@pytest.mark.parametrize(
    ("limit", "wanted", "most"),
    [
        (65536, 25_000, 25_000),
        (1024, 25_000, 1024 - NOT_COUNTED),
        (1024, 0, 1024 - NOT_COUNTED),  # no limit of ours, but the system's
        (NOT_COUNTED + 1, 25_000, 1),
        (resource.RLIM_INFINITY, 25_000, 25_000),
        (resource.RLIM_INFINITY, 0, 0),
    ],
    indirect=["limit"],
)
@pytest.mark.usefixtures("limit")
def test_connections_are_as_many_as_wanted_and_possible(wanted: int, most: int) -> None:
    assert most_connections(wanted) == most


@pytest.mark.parametrize("limit", [NOT_COUNTED], indirect=True)
@pytest.mark.usefixtures("limit")
def test_with_too_few_files_for_any_client_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    with pytest.raises(StartupError, match=f"is {NOT_COUNTED}, and {NOT_COUNTED + 1} are needed"):
        raise_limit()


async def test_that_no_file_is_left_is_counted_and_logged_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()
    open_files = OpenFiles(metrics)
    open_files.look()
    assert not caplog.messages

    def none_left(*_: Any) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "open", none_left)
    for _ in range(3):
        open_files.look()
    counts = {labels[0]: count for labels, count in metrics.snapshot()[REFUSED.name]}
    assert counts["open_files"] == 3
    (line,) = caplog.messages
    assert "new connections are reset" in line
    assert "Too many open files" in line
