"""A database with an outbox, a server, and relays between them."""

import json
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any, Final

import pytest

from delayqueue.client import Client
from tests.processes import Process, Processes, QueueServer, StoreServer, environment, run_program
from tests.relay.databases import KINDS, Database, running
from tests.relay.gateway import Gateway

READY: Final = "moving the rows"
# how a table of an earlier version, or one made by hand, loses its constraints
UNCHECKED: Final = {
    "mariadb": "SELECT CONCAT('ALTER TABLE {0} DROP CONSTRAINT `', constraint_name, '`')"
    " FROM information_schema.check_constraints WHERE table_name = '{0}' AND level = 'Table'",
    "postgresql": "SELECT 'ALTER TABLE {0} DROP CONSTRAINT ' || conname"
    " FROM pg_constraint WHERE conrelid = '{0}'::regclass AND contype = 'c'",
}


class RelayProcess(Process):
    """A relay."""

    def is_ready(self) -> bool:
        return READY in self.log_tail()


class Outbox:
    """An outbox of a test's own, the server, and what moves rows between them."""

    def __init__(self, database: Database, server: QueueServer, processes: Processes) -> None:
        self.database = database
        self.table = f"outbox_{secrets.token_hex(4)}"
        self.topic = f"topic-{self.table}"
        self.client = Client(server.url, token="")
        self.url = server.url
        self._processes = processes
        assert not self.run("--init").returncode

    def run(self, *options: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run `delay-queue relay` to its end."""
        given = ("relay", "--table", self.table, *options)
        return run_program(*given, settings=self._settings(**settings))

    def once(self, **settings: str) -> subprocess.CompletedProcess[str]:
        """Move what is there."""
        return self.run("--once", **settings)

    def relay(self, *options: str, **settings: str) -> RelayProcess:
        """A relay that runs until the module ends."""
        home = self._processes.home("relay")
        command = [sys.executable, "-m", "delayqueue", "relay", "--table", self.table, *options]
        relay = RelayProcess(
            "relay", home, command, port=0, environment=environment(self._settings(**settings))
        )
        return self._processes.started(relay)

    def insert(self, *, connection: Any = None, **row: Any) -> None:
        """Insert a row, in a transaction of its own unless there is a connection."""
        if not {"topic", "cancel", "cancel_tag"} & row.keys():
            row["topic"] = self.topic
        names, marks = ", ".join(row), ", ".join(["%s"] * len(row))
        sql = f"INSERT INTO {self.table} ({names}) VALUES ({marks})"
        values = [json.dumps(each) if isinstance(each, dict) else each for each in row.values()]
        if connection is None:
            self.database.execute(sql, *values)
        else:
            connection.cursor().execute(sql, values)

    def rows(self, columns: str = "id") -> list[Any]:
        """What is left in the table, by number."""
        sql = f"SELECT {columns} FROM {self.table} ORDER BY seq"
        return [row[0] if len(row) == 1 else row for row in self.database.execute(sql)]

    def bodies(self) -> list[str]:
        """The bodies of the topic's waiting jobs, in the order in which they are due."""
        return [job.body for job in self.client.list_jobs(self.topic).jobs]

    def state(self, job_id: str) -> str | None:
        """The state of a job."""
        job = self.client.get(job_id)
        return None if job is None else job.state.value

    def _settings(self, **settings: str) -> dict[str, object]:
        return {"relay_dsn": self.database.dsn, "url": self.url, **settings}


def unchecked(outbox: Outbox) -> None:
    """Let its table take every row, as a table of an earlier version, or one made by hand."""
    sql = UNCHECKED[outbox.database.kind].format(outbox.table)
    for (statement,) in outbox.database.execute(sql):
        outbox.database.execute(statement)


@pytest.fixture(scope="module")
def server(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(redis_server, strict="yes")


@pytest.fixture(scope="session")
def databases() -> Iterator[Callable[[str], Database]]:
    """Gives a database of a kind, which is started once: each module goes through all kinds."""
    with ExitStack() as stack:
        yield cache(lambda kind: stack.enter_context(running(kind)))


@pytest.fixture(scope="session", params=KINDS)
def database(request: pytest.FixtureRequest, databases: Callable[[str], Database]) -> Database:
    """A MariaDB, or a PostgreSQL."""
    return databases(request.param)


@pytest.fixture
def outbox(database: Database, server: QueueServer, processes: Processes) -> Iterator[Outbox]:
    made = Outbox(database, server, processes)
    yield made
    made.client.close()


@pytest.fixture
def gateway(server: QueueServer) -> Iterator[Gateway]:
    """A way to the server that can hold back its answers."""
    with Gateway(server.port) as made:
        yield made
