"""Bodies: any bytes come back unchanged, and what must be text is text."""

import pytest

from delayqueue.domain.body import body_of, raw_body, readable

BODIES = (
    b"",
    b"plain",
    "订单 🐘".encode(),
    b"\x00\x7f",
    b"\xff\xfe",
    b"a\xe4b",
    b"\xed\xb3\xbf",
    bytes(range(256)),
)


@pytest.mark.parametrize("raw", BODIES)
def test_any_bytes_come_back(raw: bytes) -> None:
    assert raw_body(body_of(raw)) == raw


@pytest.mark.parametrize("raw", BODIES)
def test_any_body_can_be_shown(raw: bytes) -> None:
    shown = readable(body_of(raw))
    assert shown == raw.decode("utf-8", "replace")
    shown.encode()
