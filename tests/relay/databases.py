"""Real MariaDB and PostgreSQL servers, each in a directory of its own, run by a user without rights."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psycopg
import pymysql
import pytest

from delayqueue.relay.mysql import MySQL
from delayqueue.relay.postgres import Postgres
from tests.processes import HERE, LOOPBACK, START_S, Host, Process, ProcessError, free_port

USER: Final = "nobody"  # if the tests run as root: PostgreSQL refuses that


def _unprivileged() -> tuple[str, ...]:
    """What runs a program as a user without rights, and has the kernel end it with the tests."""
    if os.geteuid():
        return ()
    user = pwd.getpwnam(USER)
    drop = ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
    return (*drop, "setpriv", "--pdeathsig", "KILL")  # changing the user forgets the first one


def _found(name: str, package: str, *folders: str) -> str:
    """Where the program is; skips the test if it is not installed."""
    path = os.pathsep.join([os.environ["PATH"], *folders])
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"{name} is not here: apt-get install {package}")
    return found


class Database(Process):
    """A database server. `dsn` leads to it, with all rights."""

    kind: str
    dsn: str

    def __init__(self, home: Path, command: list[str], port: int) -> None:
        host = Host(HERE.address, _unprivileged())
        super().__init__(self.kind, home, command, port=port, host=host)

    def connect(self) -> Any:
        """A connection of the driver that programs use."""
        raise NotImplementedError

    def execute(self, sql: str, *values: object) -> Any:
        """Execute a statement in a transaction of its own. Returns the rows that it gives."""
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql, values or None)
                rows = cursor.fetchall() if cursor.description else ()
            connection.commit()
        finally:
            connection.close()
        return rows

    def is_ready(self) -> bool:
        with suppress(psycopg.Error, pymysql.MySQLError):
            self.connect().close()
            return True
        return False


class MariaDB(Database):
    kind = "mariadb"

    def __init__(self, home: Path, *options: str) -> None:
        program = _found("mariadbd", "mariadb-server", "/usr/sbin", "/usr/libexec")
        port = free_port()
        data = home / "data"
        # in its tmpdir a server that starts removes what others have there
        own = [f"--datadir={data}", f"--tmpdir={home}"]
        install = ["mariadb-install-db", "--no-defaults", *own]
        _run([*install, "--auth-root-authentication-method=normal", "--skip-test-db"], home)
        command = [program, "--no-defaults", *own, f"--bind-address={LOOPBACK}"]
        command += [f"--port={port}", f"--socket={home / 'socket'}", "--skip-name-resolve"]
        # the operating system outlives it in these tests
        command += ["--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M"]
        super().__init__(home, [*command, *options], port)
        self.dsn = f"mysql://root@{LOOPBACK}:{port}/test"

    def start(self) -> None:
        super().start()
        self.connect(database=None).cursor().execute("CREATE DATABASE IF NOT EXISTS test")

    @staticmethod
    def connected(port: int, database: str | None = "test") -> Any:
        return pymysql.connect(host=LOOPBACK, port=port, user="root", database=database)

    def connect(self, database: str | None = "test") -> Any:
        return self.connected(self.port, database)

    def is_ready(self) -> bool:
        with suppress(pymysql.MySQLError):
            self.connect(database=None).close()
            return True
        return False


class PostgreSQL(Database):
    kind = "postgresql"

    def __init__(self, home: Path, *options: str) -> None:
        folders = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)
        program = _found("postgres", "postgresql", *folders)
        port = free_port()
        data = home / "data"
        initdb = [_found("initdb", "postgresql", *folders), "-D", str(data), "-U", "root"]
        _run([*initdb, "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"], home)
        command = [program, "-D", str(data), "-p", str(port), "-k", str(home), "-F"]
        command += ["-c", f"listen_addresses={LOOPBACK}", *options]
        super().__init__(home, command, port)
        self.dsn = f"postgresql://root@{LOOPBACK}:{port}/postgres"

    def start(self) -> None:
        """Start, once the processes of a killed server no longer hold its memory."""
        until_s = time.monotonic() + START_S
        while True:
            try:
                super().start()
            except ProcessError as error:
                if "shared memory block" not in str(error) or time.monotonic() > until_s:
                    raise
                time.sleep(0.1)
            else:
                return

    @staticmethod
    def connected(port: int) -> Any:
        return psycopg.connect(host=LOOPBACK, port=port, user="root", dbname="postgres")

    def connect(self) -> Any:
        return self.connected(self.port)


def _run(command: list[str], home: Path) -> None:
    done = subprocess.run(
        [*_unprivileged(), *command], cwd=home, capture_output=True, text=True, check=False
    )
    assert not done.returncode, f"{done.stdout}\n{done.stderr}"


KINDS: Final[dict[str, type[MariaDB | PostgreSQL]]] = {
    each.kind: each for each in (MariaDB, PostgreSQL)
}

# what a relay takes rows with
TAKERS: Final[dict[str, type[MySQL | Postgres]]] = {"mariadb": MySQL, "postgresql": Postgres}


@contextmanager
def running(kind: str, *options: str) -> Iterator[Database]:
    """A database server with these options, which runs as long as the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        if not os.geteuid():
            shutil.chown(home, USER)
        database = KINDS[kind](home, *options)
        try:
            database.start()
            yield database
        finally:
            database.close()
