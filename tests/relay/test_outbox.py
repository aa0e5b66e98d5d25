"""The helpers that put a job into the outbox, from whatever library has the connection."""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, Final

import django.conf  # type: ignore[import-untyped]
import django.db  # type: ignore[import-untyped]
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from delayqueue import outbox as helpers
from delayqueue.client import Job
from tests.relay.conftest import Outbox


def of_driver(outbox: Outbox) -> Iterator[Any]:
    connection = outbox.database.connect()
    yield connection, connection
    connection.close()


def of_sqlalchemy(outbox: Outbox) -> Iterator[Any]:
    driver = {"mariadb": "mysql+pymysql", "postgresql": "postgresql+psycopg"}
    engine = create_engine(
        f"{driver[outbox.database.kind]}:{outbox.database.dsn.partition(':')[2]}"
    )
    with Session(engine) as session:
        yield session, session
    engine.dispose()


def of_django(outbox: Outbox) -> Iterator[Any]:
    database = outbox.database
    if database.kind != "postgresql":
        pytest.skip("Django's driver for MySQL has to be compiled")
    if not django.conf.settings.configured:
        django.conf.settings.configure()
        django.setup()
    engine = {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "root"}
    where = {"HOST": "127.0.0.1", "PORT": database.port}
    connection = django.db.ConnectionHandler({"default": engine | where})["default"]
    connection.set_autocommit(False)
    yield connection, connection
    connection.close()


LIBRARIES = {"driver": of_driver, "sqlalchemy": of_sqlalchemy, "django": of_django}


@pytest.fixture(params=LIBRARIES)
def transaction(request: pytest.FixtureRequest, outbox: Outbox) -> Iterator[Any]:
    """A connection or session, and whose `commit` and `rollback` end its transaction."""
    yield from LIBRARIES[request.param](outbox)


def test_jobs_and_cancels_are_committed_with_the_transaction(
    outbox: Outbox, transaction: Any
) -> None:
    connection, owner = transaction
    job = Job(topic=outbox.topic, body={"order": 7}, delay="30m", tags=["user:7"], retry=["1m", 2])
    assert helpers.push(connection, job, table=outbox.table) == job.id
    owner.rollback()
    outbox.once()
    assert outbox.state(job.id) is None
    helpers.push(connection, job, table=outbox.table)
    other = Job(topic=outbox.topic, due=4_000_000_000, tags=[outbox.topic])
    helpers.push(connection, other, table=outbox.table)
    owner.commit()
    assert outbox.once().returncode == 0
    found = outbox.client.get(job.id, options=True)
    assert found is not None
    assert (found.body, found.tags, found.retry) == ('{"order":7}', ("user:7",), (60, 2))
    assert found.due - found.created == pytest.approx(1800, abs=60)
    helpers.cancel(connection, job.id, table=outbox.table)
    helpers.cancel_tag(connection, outbox.topic, topic=outbox.topic, table=outbox.table)
    owner.commit()
    assert outbox.once().returncode == 0
    assert [outbox.state(each.id) for each in (job, other)] == ["cancelled", "cancelled"]


class Inserted:
    """A connection that keeps what is inserted."""

    def __init__(self) -> None:
        self.values: list[tuple[Any, ...]] = []

    def cursor(self) -> Any:
        return nullcontext(self)

    def execute(self, _: str, values: tuple[Any, ...]) -> None:
        self.values.append(values)


IMPOSSIBLE: Final[list[tuple[dict[str, Any], str]]] = [
    ({"delay": "soon"}, "'soon': must be seconds"),
    ({"ttr": 999_999}, "ttr 999999: must be 1 to 86400 seconds"),
    ({"tags": "order:1001"}, "tags='order:1001' is a text: write tags=['order:1001']"),
    ({"retry": ["x"]}, "retry: 'x': must be seconds"),
    ({"call": "ftp://x/"}, "call.url: must be http"),
    ({"idempotency_key": "row 7"}, "idempotency_key: the relay gives each row one of its own"),
]


@pytest.mark.parametrize(("fields", "message"), IMPOSSIBLE, ids=str)
def test_a_job_that_push_would_refuse_is_refused_before_the_insert(
    fields: dict[str, Any], message: str
) -> None:
    connection = Inserted()
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}"):
        helpers.push(connection, Job(**{"topic": "t"} | fields))
    assert connection.values == []


def test_a_cancel_of_what_no_job_can_be_is_refused_before_the_insert() -> None:
    connection = Inserted()
    wrong: Any = 7
    for bad in ("", " ", "*", "x" * 1025, wrong):
        with pytest.raises((TypeError, ValueError), match=r"^id: "):
            helpers.cancel(connection, bad)
    for bad in ("", " ", "x" * 257, wrong):
        with pytest.raises((TypeError, ValueError), match=r"^tag: "):
            helpers.cancel_tag(connection, bad)
        with pytest.raises((TypeError, ValueError), match=r"^topic: "):
            helpers.cancel_tag(connection, "a", topic=bad)
    assert connection.values == []


def test_names_are_inserted_as_the_server_understands_them_and_a_star_as_an_id() -> None:
    connection = Inserted()
    assert helpers.push(connection, Job(topic=" t ", id=" a1\u3000", tags=[" x "])) == "a1"
    made = helpers.push(connection, Job(topic="t", id="*"))
    helpers.cancel(connection, "a1 ")
    helpers.cancel_tag(connection, " x ", topic=" t ")
    push, star, cancel, tag = connection.values
    assert {"t", "a1", '{"ttr": 60, "tags": ["x"]}'} <= {*push}
    assert made in star
    assert "*" not in made
    assert (cancel, tag) == (("a1", True), ("x", "t"))
