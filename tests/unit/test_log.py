"""One line per event, whatever is in it."""

import io
import json
import logging
import sys
import time
from collections.abc import Iterator

import pytest

from delayqueue import log
from delayqueue.net import each_minute
from tests.waiting import until


@pytest.fixture(autouse=True)
def root_logger_is_put_back() -> Iterator[None]:
    root = logging.getLogger()
    before = root.level, root.handlers[:]
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]


FORGED = "finished\n2026-01-31T12:00:00.000Z INFO delayqueue: a lie\r\x1b[2J\u2028\udc80"
ESCAPED = r"finished\n2026-01-31T12:00:00.000Z INFO delayqueue: a lie\r\x1b[2J\u2028\udc80"


def test_text_is_one_line_that_cannot_be_forged(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("info", "text")
    logging.getLogger("some.module").warning("job %s", FORGED)
    line = capsys.readouterr().err
    head, message = line.removesuffix("\n").split(" WARNING some.module: ")
    assert message == f"job {ESCAPED}"
    assert line.endswith("\n")
    assert len(head) == len("2026-01-31T12:00:00.000Z")


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("info", "json")
    logging.getLogger("some.module").warning("job %s", FORGED)
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    event = json.loads(line)
    assert event.pop("time").endswith("Z")
    assert event == {"level": "warning", "logger": "some.module", "message": f"job {FORGED}"}


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_traceback_stays_on_its_line(capsys: pytest.CaptureFixture[str], style: str) -> None:
    log.set_up("info", style)
    try:
        raise ValueError("broken\n")  # noqa: TRY301  # a traceback is what is wanted
    except ValueError:
        logging.getLogger().exception("it failed")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "it failed" in lines[0]
    assert "ValueError: broken" in lines[0]


def test_a_terminal_has_a_traceback_on_lines_that_are_no_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    log.set_up("info", "text")
    try:
        raise ValueError(FORGED)  # noqa: TRY301  # a traceback is what is wanted
    except ValueError:
        logging.getLogger().exception("it failed: %s", FORGED)
    head, *more = terminal.getvalue().splitlines()
    assert head.endswith(" ERROR root: it failed: finished")
    assert "    Traceback (most recent call last):" in more
    assert {line[:4] for line in more} == {"    "}
    assert "\x1b" not in terminal.getvalue()


def test_what_is_below_the_level_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("warning", "text")
    logging.getLogger().info("quiet")
    logging.getLogger().warning("loud")
    assert "quiet" not in (written := capsys.readouterr().err)
    assert "loud" in written


def test_setting_up_again_replaces_what_was_there(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("info", "text")
    log.set_up("info", "json")
    logging.getLogger().info("once")
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_log_goes_to_standard_error_alone(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("info", "text")
    logging.getLogger().info("here")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "here" in captured.err


def test_a_warning_that_repeats_itself_is_written_once_and_then_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log.set_up("info", "text")
    now_s = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    store, other = logging.getLogger("store"), logging.getLogger("other")

    def said() -> list[str]:
        for _ in range(3):
            store.warning("%s failed", "tick")
        for logger, text in ((store, "push failed"), (other, "tick failed")):
            logger.warning(text)
        for _ in range(2):
            store.info("told each time")
        return [line.split(" ", 1)[1] for line in capsys.readouterr().err.splitlines()]

    told = ["INFO store: told each time"] * 2
    assert said() == [
        "WARNING store: tick failed",
        "WARNING store: push failed",
        "WARNING other: tick failed",
        *told,
    ]
    now_s += log.REPEAT_S - 1
    assert said() == told
    now_s += 1
    assert said() == [
        "WARNING store: tick failed (5 more since the last)",
        "WARNING store: push failed (1 more since the last)",
        "WARNING other: tick failed (1 more since the last)",
        *told,
    ]


def test_an_error_that_repeats_itself_is_written_each_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A second SIGHUP with the same mistake in the file is refused, too, and says so."""
    log.set_up("info", "text")
    for _ in range(2):
        logging.getLogger().error("not reloaded")
    assert capsys.readouterr().err.count("not reloaded") == 2


def test_a_warning_whose_arguments_do_not_fit_breaks_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.set_up("info", "text")
    logging.getLogger().warning("%d jobs", "many")
    assert "Logging error" in capsys.readouterr().err


def test_warnings_that_differ_are_all_written_and_take_no_memory(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MOST_REMEMBERED", 2)
    now_s = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    log.set_up("info", "text")
    [handler] = logging.getLogger().handlers
    assert isinstance(handler, log.Handler)
    for number in range(4):
        logging.getLogger().warning("job %d", number)
    assert len(capsys.readouterr().err.splitlines()) == 4
    assert len(handler._written) == 2
    now_s += log.REPEAT_S
    for _ in range(2):
        logging.getLogger().warning("job 4")  # takes the place of the oldest
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert len(handler._written) == 2


async def test_what_happens_often_is_told_at_once_and_then_once_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(each_minute, "MINUTE_S", 0.05)
    told: list[int] = []

    def tell(count: int) -> None:
        told.append(count)
        if told == [1, 999]:
            often.happened()  # in the minute that begins
            assert told == [1, 999]

    often = each_minute.EachMinute(tell)
    for _ in range(1000):
        often.happened()
    assert told == [1]
    await until(lambda: told == [1, 999, 1])
