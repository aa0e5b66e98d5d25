"""What the express lane takes for a plain request."""

import timeit

import pytest

from delayqueue.web.head import may_become_plain, read_head

PLAIN = b"POST /push HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"
MOST_S = 0.005  # a hundred times what it needs


def test_a_plain_head_is_read() -> None:
    head = read_head(
        b"POST /push HTTP/1.1\r\nHost: x:9277\r\nX-Empty:\r\nUSER-agent:\t a b \t\r\nContent-Length: 042\r\n\r\n"
    )
    assert head is not None
    assert (head.path, head.length, head.closes) == ("/push", 42, False)
    assert head.headers == {
        "host": "x:9277",
        "x-empty": "",
        "user-agent": "a b",
        "content-length": "042",
    }


@pytest.mark.parametrize("word", ["close", "Close"])
def test_a_client_can_say_that_it_wants_no_more(word: str) -> None:
    head = read_head(PLAIN.replace(b"Host: x", f"Host: x\r\nConnection: {word}".encode()))
    assert head is not None
    assert head.closes


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"POST", b"GET", "another method"),
        (b"POST", b"post", "methods are in upper case"),
        (b"POST /", b"POST  /", "two blanks"),
        (b"/push", b"/push?a=1", "a query"),
        (b"/push", b"/p%75sh", "an escape"),
        (b"/push", b"http://x/push", "a whole URL"),
        (b"/push", b"push", "no slash"),
        (b"1.1", b"1.0", "an older version"),
        (b"1.1\r\n", b"1.1 \r\n", "a blank after the version"),
        (b"1.1\r\n", b"1.1\n", "a bare line feed"),
        (b"Host: x\r\n", b"Host: x\n", "a bare line feed"),
        (b"Host: x\r\n", b"Host: x\r", "a bare carriage return"),
        (b"Host: x", b"Host : x", "a blank before the colon"),
        (b"Host: x", b" Host: x", "a folded line"),
        (b"Host: x", b"Host: x\r\n y", "a folded line"),
        (b"Host: x", b"Host x", "no colon"),
        (b"Host: x", b": x", "no name"),
        (b"Host: x", b"Ho\xc3\xb6st: x", "a name with other letters"),
        (b"Host: x", b"Host: \xc3\xb6", "a value with other letters"),
        (b"Host: x", b"Host: a\0b", "a NUL"),
        (b"Host: x", b"Host: a\x0bb", "a control character"),
        (b"Host: x", b"Host: x\r\nHost: x", "a header twice"),
        (b"Host: x", b"Host: x\r\nContent-length: 2", "a length twice, even the same"),
        (b"Host: x", b"Host: x\r\nTransfer-Encoding: chunked", "a length and chunks"),
        (b"Host: x", b"Host: x\r\nExpect: 100-continue", "a client that waits to be told"),
        (b"Host: x", b"Host: x\r\nContent-Encoding: gzip", "a compressed body"),
        (b"Host: x", b"Host: x\r\nConnection: upgrade, close", "more than close or keep-alive"),
        (b"Host: x", b"\r\n".join(b"X%d: a" % n for n in range(127)) + b"\r\nHost: x", "long"),
        (b"Host: x", b"Host: x\r\nProxy-Connection: close", "it closes the connection, too"),
        (b"Host: x", b"Host: x\r\nConnection: keep-alive, x", "more than close or keep-alive"),
        (b"Length: 2", b"Length: +2", "a sign"),
        (b"Length: 2", b"Length: 2, 2", "two lengths"),
        (b"Length: 2", b"Length: 0x2", "not decimal"),
        (b"Length: 2", b"Length:", "an empty length"),
        (b"Length: 2", b"Length: 9999999999", "ten digits"),
        (b"Content-Length: 2\r\n", b"", "no length"),
        (b"Host: x\r\n", b"", "no host"),
    ],
)
def test_whatever_is_not_plain_is_left_to_aiohttp(old: bytes, new: bytes, reason: str) -> None:
    assert read_head(PLAIN) is not None
    assert read_head(PLAIN.replace(old, new, 1)) is None, reason


@pytest.mark.parametrize("size", range(1, len(PLAIN)))
def test_a_beginning_of_a_plain_head_is_waited_with(size: int) -> None:
    assert may_become_plain(PLAIN[:size])


@pytest.mark.parametrize("bytes_", [b"G", b"\x16\x03", b"POST  ", b"POST /x HTTP/1.1\nHost"])
def test_what_cannot_become_a_plain_head_is_not_waited_with(bytes_: bytes) -> None:
    assert not may_become_plain(bytes_)


@pytest.mark.parametrize(
    "value",
    [b"a" + b" \t" * 2000, b" \t" * 2000, b"a " * 2000, b" " * 2000 + b"a" + b" " * 2000],
    ids=["blanks after", "blanks before", "blanks between", "blanks around"],
)
def test_a_long_head_is_refused_in_little_time(value: bytes) -> None:
    """A pattern that tries in many ways to share out the blanks takes 66 ms for 4 kB of them."""
    assert read_head(PLAIN.replace(b"Host: x", b"Host: x\r\nA:" + value)) is not None
    bad = PLAIN.replace(b"Host: x", b"Host: x\r\nA:" + value + b"\0")
    read = read_head.__wrapped__  # without its cache
    assert min(timeit.repeat(lambda: read(bad), number=1, repeat=5)) < MOST_S


@pytest.mark.parametrize(
    "offer",
    [
        b"Connection: Upgrade\r\nUpgrade: h2c",
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA",
        b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket",
        b"Upgrade: h2c",
    ],
)
def test_an_offer_of_another_protocol_is_ignored(offer: bytes) -> None:
    head = read_head(PLAIN.replace(b"Host: x", b"Host: x\r\n" + offer, 1))
    assert head is not None
    assert not head.closes


def test_128_header_lines_are_plain() -> None:
    more = b"\r\n".join(b"X%d: a" % n for n in range(126))
    assert read_head(PLAIN.replace(b"Host: x", b"Host: x\r\n" + more, 1)) is not None
