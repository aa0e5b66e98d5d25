"""The recipes, followed word for word in a folder with the client of two functions and the database of a shop."""

import os
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from delayqueue import Client
from tests.processes import REPOSITORY, QueueServer

from .follow import Follower
from .markdown import ended, run
from .test_orders import needs

# `jobs` as Laravel's migration makes it
SHOP: Final = """\
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, queue VARCHAR NOT NULL, payload TEXT NOT NULL,
    attempts INTEGER NOT NULL, reserved_at INTEGER, available_at INTEGER NOT NULL, created_at INTEGER NOT NULL
);
CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR NOT NULL, placed_at INTEGER NOT NULL);
CREATE TABLE done (job VARCHAR PRIMARY KEY);
CREATE TABLE balances (customer INTEGER PRIMARY KEY, cents INTEGER NOT NULL);
INSERT INTO balances VALUES (7, 0);
"""
CREATED_S: Final = 1795000000  # of the rows in `jobs`; the page shows it


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    needs("php", [])
    modules = subprocess.run(["php", "-m"], capture_output=True, text=True, check=True).stdout
    if "pdo_sqlite" not in modules.split():
        pytest.skip("php-sqlite3 is not installed")
    shutil.copy(REPOSITORY / "examples" / "php" / "delay_queue.php", tmp_path)
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as database:
        database.executescript(SHOP)
    return tmp_path


@pytest.fixture
def busy_shop(shop: Path) -> Path:
    """A shop with rows in its tables."""
    now_s = int(time.time())
    jobs = [("default", "1001", -60), ("default", "1002", 1800), ("mail", "1003", 0)]
    with closing(sqlite3.connect(shop / "shop.sqlite")) as database:
        for queue, order, delay_s in jobs:
            database.execute(
                "INSERT INTO jobs VALUES (NULL, ?, ?, 0, NULL, ?, ?)",
                (queue, f'{{"job":"close {order}"}}', now_s + delay_s, CREATED_S),
            )
        orders = [(3001, "unpaid", now_s), (3002, "unpaid", now_s - 3600), (3003, "paid", now_s)]
        database.executemany("INSERT INTO orders VALUES (?, ?, ?)", orders)
        database.commit()
    return shop


def test_who_follows_the_recipes_sees_what_they_show(server: QueueServer, busy_shop: Path) -> None:
    Follower(busy_shop, server).follow("docs/recipes.md")
    with closing(sqlite3.connect(busy_shop / "shop.sqlite")) as database:
        assert database.execute("SELECT * FROM balances").fetchall() == [(7, 500)]
        assert database.execute("SELECT * FROM jobs").fetchall() == []


def test_a_job_that_is_done_does_not_come_again_if_its_row_is_moved_again(
    server: QueueServer, busy_shop: Path
) -> None:
    rows = jobs_of(busy_shop, "wiki")
    assert moved(server, busy_shop, "wiki") == (0, "moved 3 jobs, 0 refused\n")
    with Client(server.url) as queue:
        held = queue.pop_many("wiki", count=9)
        assert len(queue.finish_many(held)) == 2
        # as if the program had died before it deleted them
        with closing(sqlite3.connect(busy_shop / "shop.sqlite")) as database, database:
            database.executemany("INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        assert moved(server, busy_shop, "wiki") == (0, "moved 3 jobs, 0 refused\n")
        assert queue.pop("wiki", wait=0) is None
        assert [topic.delayed for topic in queue.topics("wiki")] == [1]


def test_applications_with_the_same_rows_keep_their_jobs_and_a_refused_row_stays(
    server: QueueServer, busy_shop: Path
) -> None:
    rows = jobs_of(busy_shop, "both")
    assert moved(server, busy_shop, "forum")[0] == 0
    with closing(sqlite3.connect(busy_shop / "shop.sqlite")) as database, database:
        database.executemany("INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        database.execute("UPDATE jobs SET queue = 'both,low' WHERE id = 2")
    status, said = moved(server, busy_shop, "blog")
    assert (status, said.splitlines()[-1]) == (1, "moved 2 jobs, 1 refused")
    assert said.startswith("row 2: topic")
    with Client(server.url) as queue:
        assert [(topic.ready, topic.delayed) for topic in queue.topics("both")] == [(4, 1)]
    assert [row[0] for row in jobs_of(busy_shop, "both")] == [2]


def test_a_refund_that_the_database_refused_is_not_taken_for_paid(
    server: QueueServer, shop: Path
) -> None:
    program = shutil.copy(REPOSITORY / "examples/recipes/pay_once.php", shop)
    command = ["php", str(program), f"sqlite:{shop / 'shop.sqlite'}"]
    environment = os.environ | {"DELAYQUEUE_URL": server.url}
    limited = "CREATE TRIGGER full BEFORE UPDATE ON balances BEGIN SELECT RAISE(ABORT, 'full'); END"
    with closing(sqlite3.connect(shop / "shop.sqlite")) as database, Client(server.url) as queue:
        queue.push("refund", {"customer": 7, "cents": 500}, id="refund-8", ttr=60)
        database.execute(limited)
        assert ended(command, environment=environment).returncode != 0
        database.execute("DROP TRIGGER full")
        queue.push("refund", {"customer": 7, "cents": 500}, id="refund-8", ttr=60)
        assert run(command, environment=environment) == "paid refund-8\n"
        assert database.execute("SELECT cents FROM balances").fetchall() == [(500,)]


def jobs_of(shop: Path, queue: str) -> list[tuple[object, ...]]:
    """The rows of `jobs`, moved to this queue."""
    with closing(sqlite3.connect(shop / "shop.sqlite")) as database, database:
        database.execute("UPDATE jobs SET queue = ?", [queue])
        return database.execute("SELECT * FROM jobs").fetchall()


def moved(server: QueueServer, shop: Path, application: str) -> tuple[int, str]:
    """The exit status of the program that moves Laravel's jobs, and what it prints."""
    program = shutil.copy(REPOSITORY / "examples/recipes/move_laravel_jobs.php", shop)
    done = ended(
        ["php", program, application, f"sqlite:{shop / 'shop.sqlite'}"],
        environment=os.environ | {"DELAYQUEUE_URL": server.url},
    )
    return done.returncode, done.stderr + done.stdout
