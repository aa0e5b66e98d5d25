"""What an outbox costs: the INSERT that a transaction pays, and how many rows a second one relay moves.

Once more with all rows of 20 ids. Last, how long a relay takes to count the failed ones among those that wait.

`python -m bench.outbox [ROWS [RIVER]]`, with MariaDB and PostgreSQL; 100,000 rows by default. RIVER is the program that
bench/river makes (`go mod tidy && go build`): what a transaction pays in PostgreSQL, beside River.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from delayqueue.client import Client
from tests.processes import Processes, run_program
from tests.relay.databases import KINDS, TAKERS, running

if TYPE_CHECKING:
    from tests.processes import StoreServer
    from tests.relay.databases import Database

TABLE: Final = "delay_queue_outbox"
ORDER: Final = "INSERT INTO orders (state) VALUES ('unpaid')"
JOB: Final = (
    f"INSERT INTO {TABLE} (topic, id, body, delay, options) VALUES ('order-close', %s, %s, %s, "
    '\'{"ttr": 60, "tags": ["order:1001"]}\')'
)
BODY: Final = '{"order": 1001, "customer": 7, "reason": "not paid in time"}'
TRANSACTIONS: Final = 4000
# with and without the row, in turns: what else runs on the machine slows both down
TURNS: Final = 5
HOT_IDS: Final = 20
LEASE_S: Final = 300
NO_TRIGGER: Final = f"DROP TRIGGER {TABLE}_notify ON {TABLE}"


def main(rows: int, river: str = "") -> None:
    """Measure with both databases, and beside River if its program is given."""
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(Path(folder))
        redis = processes.redis("--appendonly", "yes")
        for kind in KINDS:
            with running(kind) as database:
                measure(database, processes, redis, rows)
                if river and database.kind == "postgresql":  # its trigger is dropped
                    subprocess.run([river, database.dsn], check=True)
        processes.close()


def measure(database: Database, processes: Processes, redis: StoreServer, rows: int) -> None:
    """Print what one database gives."""
    server = processes.server(redis)
    settings: dict[str, object] = {"relay_dsn": database.dsn, "url": server.url}
    run_program("relay", "--init", settings=settings)
    serial = {"mariadb": "BIGINT AUTO_INCREMENT PRIMARY KEY"}.get(
        database.kind, "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    )
    database.execute(f"CREATE TABLE orders (id {serial}, state VARCHAR(10))")
    alone, with_row = transactions_us(database)
    print(f"{database.kind}: a transaction {alone:.0f} us, with the row {with_row:.0f} us")
    if database.kind == "postgresql":
        database.execute(NO_TRIGGER)
        alone, with_row = transactions_us(database)
        print(f"{database.kind}, polled: {alone:.0f} us, with the row {with_row:.0f} us")
    database.execute(f"DELETE FROM {TABLE}")
    for delay_s, remember, ids in (
        (1800, "10m", rows),
        (0, "10m", rows),
        (0, "0", rows),
        (1800, "10m", HOT_IDS),
    ):
        fill(database, rows, delay_s, ids)
        programs = {"the relay": os.getpid(), "the database": database.pid}
        programs |= {"the server": server.pid, "the store": redis.pid}
        before_s = {name: processor_s(pid) for name, pid in programs.items()}
        began_s = time.perf_counter()
        done = run_program("relay", "--once", "--remember", remember, settings=settings)
        took_s = time.perf_counter() - began_s
        used_us = {
            name: (processor_s(pid) - before_s[name]) / rows * 1e6 for name, pid in programs.items()
        }
        assert not done.returncode, done.stderr
        print(
            f"{database.kind}, {ids} ids, delay {delay_s} s, --remember {remember}: {rows / took_s:,.0f} rows/s;"
            f" processor time of a row: "
            + ", ".join(f"{name} {us:.0f} us" for name, us in used_us.items())
        )
        with Client(server.url) as client:
            client.purge("order-close")
    fill(database, rows, 0, rows)
    taker = TAKERS[database.kind](database.dsn, TABLE, LEASE_S)
    began_s = time.perf_counter()
    taker.failures()
    print(f"{database.kind}: {(time.perf_counter() - began_s) * 1e3:.1f} ms to count failed rows")
    taker.close()


def transactions_us(database: Database) -> tuple[float, float]:
    """How long a transaction takes without and with a row of the outbox; the best of some turns."""
    connection = database.connect()
    took_us: tuple[list[float], list[float]] = ([], [])
    for turn in range(TURNS):
        for with_row in (False, True):
            each_us = []
            for number in range(TRANSACTIONS // TURNS):
                began_s = time.perf_counter()
                cursor = connection.cursor()
                cursor.execute(ORDER)
                if with_row:
                    cursor.execute(JOB, (f"{turn}-{number}", BODY, 1800))
                connection.commit()
                each_us.append((time.perf_counter() - began_s) * 1e6)
            took_us[with_row].append(statistics.median(each_us))
    connection.close()
    return min(took_us[False]), min(took_us[True])


def fill(database: Database, rows: int, delay_s: int, ids: int) -> None:
    """Insert so many rows, which have the ids in turn."""
    connection: Any = database.connect()
    with connection.cursor() as cursor:
        for start in range(0, rows, 1000):
            cursor.executemany(
                JOB,
                [(f"job-{number % ids}", BODY, delay_s) for number in range(start, start + 1000)],
            )
    connection.commit()
    connection.close()


def processor_s(pid: int) -> float:
    """Processor time of a program and of those of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 100_000, *sys.argv[2:])
