"""Reading responses, however they are cut, and whatever a foreign server sends."""

import pytest

from delayqueue.client.address import ServerAddress
from delayqueue.client.api_request import Answer, ApiRequest
from delayqueue.client.http import MAX_HEAD_BYTES, BadResponse, Response

OK = b"HTTP/1.1 200 OK\r\n"
WHOLE = [
    (OK + b"Content-Length: 2\r\n\r\n{}", Answer(200, b"{}"), True, "with its length"),
    (OK + b"content-length:0\r\n\r\n", Answer(200, b""), True, "empty"),
    (
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\n{}",
        Answer(200, b"{}"),
        True,
        "another one before it",
    ),
    (
        OK + b"Transfer-Encoding: Chunked\r\n\r\n3\r\n{ }\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
        Answer(200, b"{ }0123456789"),
        True,
        "in chunks",
    ),
    (
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nX: y\r\n\r\n",
        Answer(200, b"{"),
        True,
        "with a trailer",
    ),
    (
        OK + b"Connection: Close\r\nContent-Length: 1\r\n\r\n{",
        Answer(200, b"{"),
        False,
        "the last one of its connection",
    ),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n{", Answer(200, b"{"), False, "HTTP/1.0"),
    (
        b"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
        Answer(429, b"", "7"),
        True,
        "with a wait",
    ),
    (b"HTTP/1.1 204 No Content\r\n\r\n", Answer(204, b""), True, "that never has a body"),
]


@pytest.mark.parametrize(("sent", "answer", "keeps_alive", "reason"), WHOLE)
def test_an_answer_is_read_however_it_is_cut(
    sent: bytes, answer: Answer, keeps_alive: bool, reason: str
) -> None:
    for pieces in ([sent], [sent[i : i + 1] for i in range(len(sent))]):
        response = Response()
        found = [response.feed(piece) for piece in pieces]
        assert found == [None] * (len(pieces) - 1) + [answer], reason
        assert response.keeps_alive == keeps_alive, reason


def test_an_answer_may_end_with_its_connection() -> None:
    response = Response()
    assert response.feed(OK + b"\r\n{") is None
    assert response.feed(b"}") is None
    assert response.end() == Answer(200, b"{}")
    assert not response.keeps_alive


@pytest.mark.parametrize(
    "sent",
    [b"", OK, OK + b"Content-Length: 3\r\n\r\n{}", OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n"],
)
def test_an_answer_that_is_cut_off_is_none(sent: bytes) -> None:
    response = Response()
    assert not sent or response.feed(sent) is None
    with pytest.raises(BadResponse, match="before the answer was complete"):
        response.end()


def test_a_connection_with_more_than_was_asked_for_is_not_used_again() -> None:
    response = Response()
    assert response.feed(OK + b"Content-Length: 1\r\n\r\n{HTTP/1.1 200") == Answer(200, b"{")
    assert not response.keeps_alive


@pytest.mark.parametrize(
    "sent",
    [
        b"-ERR unknown command\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nmore\r\n",
        OK + b"X: " + b"y" * MAX_HEAD_BYTES,
    ],
)
def test_what_is_no_answer_is_said_at_once(sent: bytes) -> None:
    with pytest.raises(BadResponse):
        Response().feed(sent)


@pytest.mark.parametrize(
    ("url", "host", "line"),
    [
        ("http://queue", b"queue:80", b"POST /push HTTP/1.1"),
        ("https://[::1]:9277/", b"[::1]:9277", b"POST /push HTTP/1.1"),
        ("http://QUEUE:1/a b/", b"queue:1", b"POST /a%20b/push HTTP/1.1"),
        ("http://bücher.example", b"xn--bcher-kva.example:80", b"POST /push HTTP/1.1"),
    ],
)
def test_a_request_names_its_host_and_path(url: str, host: bytes, line: bytes) -> None:
    lines = ServerAddress.of(url, None).encode(ApiRequest("/push", {}, read=str)).split(b"\r\n")
    assert lines[0] == line
    assert b"Host: " + host in lines


def test_a_token_cannot_smuggle_lines() -> None:
    with pytest.raises(ValueError, match="token"):
        ServerAddress.of("http://queue", "a\r\nX: y")
