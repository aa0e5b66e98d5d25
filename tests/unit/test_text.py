"""Control characters of others in what people read on a terminal."""

import json
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delayqueue.domain.text import escaped, json_line, readable
from delayqueue.worker.figures import WorkerFigures

CONTROLS: Final = "\x00\x07\x1b\r\x7f\x80\x9b\x9f\u2028\u202e\u2066"


def test_they_are_shown_as_escapes_and_all_else_stays() -> None:
    assert escaped("a\x1b[2J\x9b2Jé订单\u3000🐘\n") == "a\\u001b[2J\\u009b2Jé订单\u3000🐘\n"
    assert escaped("\x9b", r"\\") == r"\\u009b"
    assert not set(CONTROLS) & set(escaped(CONTROLS))


@settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # a busy machine stops a test anywhere
@given(st.recursive(st.text() | st.integers(), lambda each: st.dictionaries(st.text(), each)))
def test_json_says_the_same_with_escapes(data: object) -> None:
    line = json_line(data)
    assert json.loads(line) == data
    assert not {*map(chr, range(32)), *map(chr, range(127, 160))} & set(line)


def test_the_labels_of_a_worker_have_none() -> None:
    figures = WorkerFigures()
    with figures.running(f"a{CONTROLS}\n"):
        pass
    lines = figures.text().splitlines()
    assert all(line.isprintable() for line in lines)
    assert r'topic="a\\u0000\\u0007\\u001b' in figures.text()


@pytest.mark.parametrize("raw", [b"", b"plain", "订单 🐘".encode(), b"\xff\xfe", b"a\xe4b"])
def test_bytes_that_are_no_text_can_be_shown(raw: bytes) -> None:
    shown = readable(raw.decode("utf-8", "surrogateescape"))
    assert shown == raw.decode("utf-8", "replace")
    shown.encode()
