"""The helpers that put a job into the outbox, from whatever library has the connection."""

from collections.abc import Iterator
from typing import Any

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


def test_a_job_that_cannot_be_is_refused_at_once(outbox: Outbox) -> None:
    with pytest.raises(ValueError, match="soon"):
        helpers.push(None, Job(topic="t", delay="soon"), table=outbox.table)
    with pytest.raises(ValueError, match="idempotency_key"):
        helpers.push(None, Job(topic="t", idempotency_key="row 7"), table=outbox.table)
