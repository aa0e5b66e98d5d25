"""Bytes to commands, wherever they are cut. What each means, test_transcripts.py compares with beanstalkd."""

import random
from collections.abc import Iterable

import pytest

from delayqueue.beanstalk.commands import (
    BAD_FORMAT,
    QUIT,
    UNKNOWN_COMMAND,
    Command,
    Refusal,
    is_tube,
    parse_line,
)
from delayqueue.beanstalk.parser import EXPECTED_CRLF, GIVEN_UP, JOB_TOO_BIG, Parser

from .odd import ODD

MOST_BYTES = 65_535


def parsed(pieces: Iterable[bytes], most_bytes: int = MOST_BYTES) -> list[Command | Refusal]:
    parser, found = Parser(most_bytes), []
    for piece in pieces:
        parser.feed(piece)
        while (command := parser.next()) is not None:
            found.append(command)
    return found


def put(body: bytes, priority: int = 0, delay_s: int = 0, ttr_s: int = 1) -> Command:
    return Command("put", (priority, delay_s, ttr_s, body))


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        (b"put 1 2 3 4\r\nabcd\r\n", [put(b"abcd", 1, 2, 3)]),
        (b"put  01   2 3 0\r\n\r\n", [put(b"", 1, 2, 3)]),
        (b"put 0 0 1 4\r\n\r\n\r\n\r\n", [put(b"\r\n\r\n")]),
        (b"put 0 0 1 2\r\nabxx\r\n", [EXPECTED_CRLF, UNKNOWN_COMMAND]),
        (b"put 0 0 1 65535\r\n" + b"a" * 65535 + b"\r\n", [put(b"a" * 65535)]),
        (b"put 0 0 1 65536\r\n" + b"a" * 65538 + b"stats\r\n", [JOB_TOO_BIG, Command("stats", ())]),
        (b"delete 5\r\ndelete 6\r\n", [Command("delete", (5,)), Command("delete", (6,))]),
        (b"release 5 6 7\r\n", [Command("release", (5, 6, 7))]),
        (b"pause-tube a 7\r\n", [Command("pause-tube", ("a", 7))]),
        (
            b"reserve\r\nreserve-with-timeout 9\r\n",
            [Command("reserve", ()), Command("reserve-with-timeout", (9,))],
        ),
        (b"reserve-with-timeout -1\r\n", [BAD_FORMAT]),  # 1.12 takes it for 0, 1.13 does not
        (b"reserve-with-timeout x\r\n", [BAD_FORMAT]),
        (b"reserve-with-timeout 2147483648\r\n", [BAD_FORMAT]),
    ],
)
def test_lines_and_bodies_are_commands(sent: bytes, meant: list[Command | Refusal]) -> None:
    assert parsed([sent]) == meant


@pytest.mark.parametrize("sent", ODD.values(), ids=ODD)
def test_cuts_change_nothing(sent: bytes) -> None:
    whole = parsed([sent])
    chance = random.Random(len(sent))
    assert parsed(sent[i : i + 1] for i in range(len(sent))) == whole
    for _ in range(30):
        cuts = sorted(chance.choices(range(len(sent) + 1), k=3))
        assert (
            parsed(sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True)) == whole
        )


def test_any_bytes_make_commands_or_none() -> None:
    chance = random.Random(1)
    words = [
        b"put 0 0 1 ",
        b"\r\n",
        b"\r",
        b"\n",
        b"5",
        b" ",
        b"\0",
        b"reserve",
        b"x" * 100,
        b"use a",
    ]
    for _ in range(2000):
        sent = b"".join(chance.choices(words, k=chance.randint(1, 30)))
        assert parsed([sent]) == parsed(sent[i : i + 1] for i in range(len(sent)))


def test_what_has_no_end_takes_no_memory() -> None:
    parser = Parser(MOST_BYTES)
    for _ in range(1000):
        parser.feed(b"x" * 1000)
        assert parser.next() is None
        assert parser.pending_bytes < 224
    parser.feed(b"\r\nput 0 0 1 4294967295\r\n")
    assert parser.next() == BAD_FORMAT
    for _ in range(1000):
        assert parser.next() is None
        assert parser.pending_bytes == 0
        parser.feed(b"x" * 1000)


@pytest.mark.parametrize(
    "sent",
    [
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1:11300\r\n\r\nput 0 0 1 1\r\na\r\n",
        b"POST /" + b"a" * 216 + b" HTTP/1.1\r\nHost: x\r\n\r\nput 0 0 1 1\r\na\r\n",
        b"GET /" + b"a" * 1000 + b" HTTP/1.1\r\n\r\n",
        b"PUT /put HTTP/1.1\r\n\r\n",
    ],
)
def test_the_request_of_a_browser_ends_the_connection(sent: bytes) -> None:
    """A web page could send commands in the body."""
    assert parsed([sent])[0] == QUIT


@pytest.mark.parametrize("name", ["a", "a-", "a" * 200, "A.b/c_d;$(1)+"])
def test_a_topic_of_such_a_name_is_a_tube(name: str) -> None:
    assert is_tube(name)


@pytest.mark.parametrize("name", ["-a", "", "ä", "a b", "a" * 201, "a:b", "a\n"])
def test_a_topic_of_another_name_is_none(name: str) -> None:
    assert not is_tube(name)


def test_the_first_form_that_begins_a_line_is_meant() -> None:
    assert parse_line(b"stats-jobx 5") == BAD_FORMAT
    assert parse_line(b"list-tubes-watched") == Command("list-tubes-watched", ())
    assert parse_line(b"quit or not") == QUIT


def test_a_put_that_has_arrived_as_a_whole_is_not_given_up() -> None:
    """It waits for its turn behind one that is under way."""
    parser = Parser(MOST_BYTES)
    parser.feed(b"put 0 0 1 10\r\nabc")
    assert parser.next() is None
    parser.feed(b"defghij\r\nstats\r\n")
    assert not parser.give_up()
    assert [parser.next(), parser.next()] == [put(b"abcdefghij"), Command("stats", ())]


def test_what_follows_a_put_that_was_given_up_is_read() -> None:
    parser = Parser(MOST_BYTES)
    parser.feed(b"put 0 0 1 10\r\nabc")
    assert parser.next() is None
    assert parser.give_up()
    parser.feed(b"defghij\r\nstats\r\n")
    assert [parser.next(), parser.next()] == [GIVEN_UP, Command("stats", ())]
