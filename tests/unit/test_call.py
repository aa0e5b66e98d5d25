"""Which URLs a job may have called, and what is read back of a call."""

import json
from typing import Final

import pytest

from delayqueue.config.values import hosts
from delayqueue.delivery.call_guard import CallGuard
from delayqueue.domain.call import MAX_HEADER_BYTES, Call, check_headers, check_url
from delayqueue.domain.subscriber import Method
from delayqueue.domain.text import without

LISTED: Final = "api.partner.com, *.shops.example, 10.1.0.0/16, 8.8.4.4"


@pytest.mark.parametrize(
    ("allowed", "host", "may"),
    [
        ("", "example.com", True),  # its address is checked when a socket connects
        ("", "8.8.8.8", True),
        ("", "10.1.2.3", False),
        ("", "127.1", False),
        ("", "0x7f000001", False),
        ("", "127.0.0.1.", False),
        ("", "127。0。0。1", False),  # for the HTTP client these are full stops
        ("", "0x7f.0x0.0x0.0x1.", False),
        ("", "[::1]", False),
        ("", "[fe80::1%25eth0]", False),
        ("", "[64:ff9b::7f00:1]", False),
        ("", "[::ffff:10.1.2.3]", False),
        (LISTED, "api.partner.com", True),
        (LISTED, "API.partner.com.", True),
        (LISTED, "partner.com", False),
        (LISTED, "api.partner.com.evil.com", False),
        (LISTED, "api.partner.com%2eevil.com", False),
        (LISTED, "api.partner.com%00.evil.com", False),
        (LISTED, "evil.com/.shops.example", False),
        (LISTED, "a.shops.example", True),
        (LISTED, "b.a.shops.example", True),
        (LISTED, "shops.example", False),
        (LISTED, "evilshops.example", False),
        (LISTED, "10.1.2.3", True),
        (LISTED, "[::ffff:10.1.2.3]", True),
        (LISTED, "10.2.0.1", False),
        (LISTED, "8.8.4.4", True),
        (LISTED, "8.8.8.8", False),
    ],
)
def test_a_url_is_called_if_its_host_is_listed(allowed: str, host: str, *, may: bool) -> None:
    guard = CallGuard(hosts(allowed))
    url = f"https://{host}:8443/x?a=b"
    if may:
        assert guard.check_url(url) == url
    else:
        with pytest.raises(ValueError, match="call_allow does not list"):
            guard.check_url(url)


@pytest.mark.parametrize("text", ["a b", "http://a", "*", "a.*.b", "1.2.3", "a:80", "é.com"])
def test_a_host_in_the_settings_is_a_name_or_a_network(text: str) -> None:
    with pytest.raises(ValueError, match="must be hosts"):
        hosts(text)


@pytest.mark.parametrize("url", ["http://u:p@a/", "http://u@a/", "ftp://a/"])
def test_a_url_holds_no_password(url: str) -> None:
    with pytest.raises(ValueError, match="must"):
        check_url(url)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "a"},
        {"content-length": "1"},
        {"Transfer-Encoding": "chunked"},
        {"Webhook-Id": "1"},
        {"delay-queue-topic": "t"},
        {"A": "x", "a": "y"},
        {"": "x"},
        {"A:": "x"},
        {"A": ""},
        {"A": " x"},
        {"A": "x\n"},
        {"A": "x" * MAX_HEADER_BYTES},
        {f"A{number}": "x" for number in range(33)},
    ],
)
def test_headers_that_http_or_the_server_sets_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"."):
        check_headers(headers)


def test_a_call_is_read_as_it_was_written_also_by_newer_versions() -> None:
    call = Call(
        url="http://a/",
        method=Method.GET,
        headers={"A": "b"},
        timeout_ms=1,
        expect="x",
        give_up=True,
    )
    written = json.loads(json.dumps(call.written | {"newer": 1}))
    assert Call.read(written) == call
    assert Call.read({"url": "http://a/"}) == Call(url="http://a/")
    assert Call(url="http://a/").written == {"url": "http://a/"}
    assert "b" not in repr(call)


@pytest.mark.parametrize(
    "written",
    [{}, *({"url": "a"} | each for each in ({"method": "X"}, {"headers": 1}, {"timeout": 1e999}))],
)
def test_what_is_no_call_is_not_read(written: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        Call.read(written)


@pytest.mark.parametrize(
    ("value", "text", "kept"),
    [
        ("Bearer abcdefgh", '{"Authorization": "Bearer abcdefgh"}', '{"Authorization": "***"}'),
        ("Bearer abcdefgh", '{"token": "abcdefgh"}', '{"token": "***"}'),
        ("Bearer abcdefgh", "Bearer of news", "Bearer of news"),
        ("abcd/efgh==", "abcd/efgh== and abcd/efgh==", "*** and ***"),
        ("abcd/efgh==", r'{"key":"abcd\/efgh=="}', '{"key":"***"}'),
        ('abcd"efgh', r'{"key": "abcd\"efgh"}', '{"key": "***"}'),
        ("abcdefg", "abcdefg is too short to be told from a word", None),
        ("abcdefgh", "ABCDEFGH", None),
        ("", "an empty one is in every text", None),
    ],
)
def test_what_is_sent_in_headers_is_not_read_back(value: str, text: str, kept: str | None) -> None:
    assert without([value], text) == (text if kept is None else kept)


def test_a_secret_that_holds_another_one_leaves_nothing_of_itself() -> None:
    assert without(["abcdefgh", "12abcdefgh34"], "12abcdefgh34") == "***"
