"""Rows that no server can carry out, however they came: each gets its reason, and none stops the relay."""

import json
from collections.abc import Iterator
from contextlib import suppress
from email.message import Message
from typing import Any, Final
from urllib.request import Request, urlopen

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delayqueue.client import Client
from delayqueue.client.api_request import TransportError
from delayqueue.relay.relay import Relay
from tests.partner import Answer, Partner
from tests.relay.conftest import Outbox, unchecked
from tests.relay.databases import TAKERS

LEASE_S: Final = 30


@pytest.fixture(name="unchecked")
def unchecked_outbox(outbox: Outbox) -> Outbox:
    """An outbox whose table refuses no row."""
    unchecked(outbox)
    return outbox


@pytest.fixture
def relay(unchecked: Outbox) -> Iterator[Relay]:
    """A relay that moves a batch when it is told."""
    with made(unchecked) as one:
        yield one


class Proxy(Partner):
    """Hands requests on to a server, and answers the large ones itself, as nginx does."""

    def __init__(self, url: str, most_bytes: int) -> None:
        super().__init__(Answer(413, "<html>413 Request Entity Too Large</html>"))
        self._server_url = url
        self._most_bytes = most_bytes

    def take(self, path: str, headers: Message, body: str) -> Answer:
        if len(body) > self._most_bytes:
            return super().take(path, headers, body)
        with urlopen(Request(f"{self._server_url}{path}", body.encode())) as answered:
            return Answer(answered.status, answered.read().decode())


class made:  # noqa: N801  # used as a function
    """A relay in this process; the database and the client are closed after the block."""

    def __init__(self, outbox: Outbox, client: Client | None = None) -> None:
        self._database = TAKERS[outbox.database.kind](outbox.database.dsn, outbox.table, LEASE_S)
        self._client = client or Client(outbox.url, token="", retries=0)
        self._relay = Relay(self._database, self._client, remember_s=600)

    def __enter__(self) -> Relay:
        return self._relay

    def __exit__(self, *_: object) -> None:
        self._database.close()
        self._client.close()


def move_all(relay: Relay) -> None:
    """Move what is there; whoever moves more batches than there are rows would go on for ever."""
    for _ in range(100):
        if not relay.move():
            return
    raise AssertionError("the relay never ends")


def failures(outbox: Outbox) -> dict[str, str | None]:
    """Why rows have failed, by their ids."""
    return dict(outbox.rows("id, failed"))


def test_an_id_with_white_space_around_it_does_not_pass_for_another_row_of_the_job(
    unchecked: Outbox,
) -> None:
    outbox = unchecked
    job_id = outbox.topic
    spaces = (" ", "\t", "\u3000", "\u00a0", "\n")  # a blank behind is the same id to MySQL
    for space in spaces:
        outbox.insert(id=f"{job_id}{space}", cancel=True)
        outbox.insert(id=f"{space}{job_id}", cancel=True)
    outbox.insert(id=job_id)
    assert outbox.once().returncode == 1
    assert outbox.state(job_id) == "ready"
    assert len(outbox.rows()) == 2 * len(spaces)
    assert {reason.partition(": ")[2] for reason in outbox.rows("failed")} == {
        "no white space at its ends: the server would take it for another id"
    }


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_what_mysql_may_have_cut_fails(outbox: Outbox) -> None:
    """A session without a strict sql_mode cuts what its column cannot hold, and so makes one id of two."""
    whole = {"id": "i" * 254, "topic": "t" * 254, "cancel_tag": "c" * 254}
    with outbox.database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        for rest in ("", "a", "bc"):
            outbox.insert(connection=connection, id=f"{whole['id']}{rest}")
            outbox.insert(connection=connection, id=f"1{rest}", topic=f"{whole['topic']}{rest}")
            outbox.insert(connection=connection, cancel_tag=f"{whole['cancel_tag']}{rest}")
        connection.commit()
    done = outbox.once()
    assert "2 pushed, 1 cancelled, 6 failed" in done.stderr, done.stderr
    assert [reason.partition(":")[0] for reason in outbox.rows("failed")] == 2 * [*whole]
    assert {reason.partition(": ")[2] for reason in outbox.rows("failed")} == {
        "255 characters, at most 254: the database may have cut it"
    }


def test_a_star_gets_an_id_before_its_row_is_pushed(outbox: Outbox) -> None:
    """So a relay that dies after the push repeats the push of one id, with one key, and doubles nothing."""
    for body in "123":
        outbox.insert(id="*", body=body)
    client = Client(outbox.url, token="", retries=0)
    pushed: list[list[str]] = []

    def push_and_die(jobs: Any) -> None:
        given = list(jobs)
        pushed.append([job.id for job in given])
        outbox.client.push_many(given)
        raise TransportError("the answer is lost")

    client.push_many = push_and_die  # type: ignore[assignment]
    with made(outbox, client) as relay, pytest.raises(TransportError):
        relay.move()
    assert outbox.rows() == pushed[0]
    assert "*" not in pushed[0]
    assert outbox.once().returncode == 0
    assert sorted(outbox.bodies()) == ["1", "2", "3"]
    assert outbox.rows() == []


def test_many_stars_go_in_one_batch_and_one_cancels_nothing_nor_does_no_id(
    unchecked: Outbox, relay: Relay
) -> None:
    for _ in range(30):
        unchecked.insert(id="*")
    for job_id, cancel in (("*", True), ("", True), ("", False)):
        unchecked.insert(id=job_id, cancel=cancel)
    unchecked.insert(id=unchecked.topic)
    move_all(relay)
    empty = "id: must not be empty"
    assert unchecked.rows("failed") == ["id: * names no job to cancel", empty, empty]
    (topic,) = unchecked.client.topics(unchecked.topic)
    assert topic.ready == 31


GROUPS: Final = [
    "x" * 250,
    "x" * 10_000,
    "é" * 125,
    "a\0b",
    "\ud800",
    " ",
    "",
    "}",
    7,
    ["a"],
    {},
    None,
]


def test_a_star_whose_group_the_table_cannot_hold_stops_no_row(
    unchecked: Outbox, relay: Relay
) -> None:
    """Where there is one bucket, any id will do."""
    for group in GROUPS:
        with suppress(Exception):  # MariaDB refuses half of a surrogate pair
            unchecked.insert(id="*", body=repr(group), options={"group": group})
    unchecked.insert(id=unchecked.topic, body="last")
    move_all(relay)
    assert all("group" in reason for reason in unchecked.rows("failed"))
    pushed = ["x" * 250, "é" * 125, "a\0b", "}", None]
    assert sorted(unchecked.bodies()) == sorted([*map(repr, pushed), "last"])


def test_rows_whose_numbers_are_not_positive_are_moved_too(outbox: Outbox) -> None:
    outbox.insert(seq=-5, cancel_tag="a-tag")
    outbox.insert(seq=-4, id=outbox.topic)
    outbox.insert(seq=-3, id=outbox.topic, cancel=True)
    outbox.insert(id=f"{outbox.topic}-2")
    assert outbox.once().returncode == 0
    assert outbox.rows() == []
    assert outbox.state(outbox.topic) == "cancelled"


def test_a_time_that_no_clock_can_have_does_not_stop_the_rows_behind_it(
    unchecked: Outbox, relay: Relay
) -> None:
    times = {"postgresql": ["infinity", "-infinity"], "mariadb": ["1970-01-02"]}
    for number, time in enumerate(times[unchecked.database.kind]):
        unchecked.insert(id=f"{unchecked.topic}-{number}", created_at=time)
    unchecked.insert(id=unchecked.topic)
    move_all(relay)
    assert unchecked.state(unchecked.topic) == "ready"
    assert relay.oldest_s >= 0


def test_whatever_a_row_raises_is_its_reason(unchecked: Outbox) -> None:
    """A batch that raises is halved until the row is found, and the rest of it is pushed."""
    outbox, client = unchecked, Client(unchecked.url, token="", retries=0)
    send = client.push_many

    def push_many(jobs: Any) -> Any:
        given = list(jobs)
        if any(job.body == "bad" for job in given):
            raise AttributeError("a fault of ours")
        return send(given)

    client.push_many = push_many
    for number in range(50):
        outbox.insert(id=f"{outbox.topic}-{number}", body="bad" if number in {7, 31} else "good")
    with made(outbox, client) as relay:
        assert relay.move() == 50
    assert failures(outbox) == {
        f"{outbox.topic}-{number}": "AttributeError: a fault of ours" for number in (7, 31)
    }


def test_a_row_that_a_proxy_finds_too_large_fails_and_the_others_go_through(outbox: Outbox) -> None:
    for number in range(9):
        outbox.insert(id=f"{outbox.topic}-{number}", body="x" * (90_000 if number == 4 else 20_000))
    with Proxy(outbox.url, most_bytes=65_536) as proxy:
        assert outbox.once(url=proxy.url).returncode == 1
    assert outbox.rows() == [f"{outbox.topic}-4"]
    assert "413" in outbox.rows("failed")[0]
    (topic,) = outbox.client.topics(outbox.topic)
    assert topic.ready == 8


def test_a_batch_that_outlasts_its_lease_keeps_what_it_has_done(unchecked: Outbox) -> None:
    """A thousand rows that are refused together take many calls: the next batch must not begin anew."""
    outbox, client = unchecked, Client(unchecked.url, token="", retries=0)
    send, database = client.push_many, TAKERS[unchecked.database.kind]
    for number in range(8):
        outbox.insert(id=f"{outbox.topic}-{number}", body=str(number))
    taker = database(outbox.database.dsn, outbox.table, LEASE_S)

    def push_many(jobs: Any) -> Any:
        given = list(jobs)
        if len(given) > 2:
            raise ValueError("together they are too much")
        taker.lease_until_s -= LEASE_S / 4  # a call that takes long
        return send(given)

    client.push_many = push_many
    relay = Relay(taker, client, remember_s=600)
    left = 8
    for _ in range(8):
        with suppress(Exception):
            relay.move()
        taker.close()
        assert len(outbox.rows()) < left
        left = len(outbox.rows())
        if not left:
            break
    client.close()
    assert outbox.bodies() == [str(number) for number in range(8)]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
FIELDS: Final = (
    "ttr", "tags", "retry", "priority", "group", "expire", "retain", "if_exists", "max_wait", "call",
    "traceparent", "id", "x",
)  # fmt: skip
storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
odd_options = (
    st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=3).map(json.dumps)
    | storable
    | st.sampled_from(["[" * 900 + "]" * 900, '{"retry":' + "[" * 900 + "]" * 900 + "}"])
    | st.integers(1, 990).map(lambda deep: '{"call":{"url":' + "[" * deep + "]" * deep + "}}")
    | st.just('{"retry":{"delays":[' + "1," * 200_000 + "1]}}")
    | st.just('{"tags":["\\ud800"]}')
    | st.just('{"priority":' + "9" * 4000 + "}")
)
ids = st.sampled_from(["", " ", "*", " *", "a", "a ", "\ta", "b\u3000", "\x85b", "\x1f"]) | storable
odd_rows = st.fixed_dictionaries(
    {},
    optional={
        "id": ids,
        "topic": storable | st.sampled_from(["a,b", "", "x" * 255]),
        "body": storable,
        "delay": st.floats(allow_nan=False, allow_infinity=False),
        "due": st.floats(allow_nan=False, allow_infinity=False),
        "cancel": st.booleans(),
        "cancel_tag": storable,
        "options": odd_options,
        "seq": st.integers(-1000, -1),
    },
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=st.lists(odd_rows, min_size=1, max_size=8))
def test_no_row_stops_those_behind_it(
    unchecked: Outbox, relay: Relay, rows: list[dict[str, Any]]
) -> None:
    outbox = unchecked
    outbox.database.execute(f"DELETE FROM {outbox.table}")
    for row in rows:
        with suppress(Exception):  # what the database refuses even without constraints
            outbox.insert(**({"topic": None} | row))
    outbox.insert(id=f"{outbox.topic}-last")
    move_all(relay)
    relay.tell()
    left = outbox.rows("id, failed")
    assert [row for row in left if row[1] is None] == []
    assert f"{outbox.topic}-last" not in [row_id for row_id, _ in left]
    assert outbox.state(f"{outbox.topic}-last") is not None
