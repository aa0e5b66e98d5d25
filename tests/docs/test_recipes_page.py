"""The recipes, followed word for word in a folder with the one-function client and the database of a shop."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.processes import REPOSITORY

from .follow import Follower
from .markdown import run
from .test_orders import needs

if TYPE_CHECKING:
    from tests.processes import Processes, QueueServer, StoreServer

ILLUMINATE_DATABASE: Final = Path("/usr/share/php/Illuminate/Database/autoload.php")
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
    """With rows in its tables."""
    now_s = int(time.time())
    jobs = [("default", "1001", -60), ("default", "1002", 1800), ("mail", "1003", 0)]
    with closing(sqlite3.connect(shop / "shop.sqlite")) as database:
        for queue, order, delay_s in jobs:
            database.execute(
                "INSERT INTO jobs VALUES (NULL, ?, ?, 0, NULL, ?, ?)",
                (queue, f'{{"job":"close {order}"}}', now_s + delay_s, now_s),
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


def test_laravel_works_on_the_jobs_that_its_database_queue_held(
    processes: Processes, redis_server: StoreServer, shop: Path
) -> None:
    needs("php", [ILLUMINATE_DATABASE])
    server = processes.server(redis_server)
    program = ["php", str(Path(__file__).with_name("laravel_database.php"))]
    run([*program, "put", str(shop / "shop.sqlite")])
    shutil.copy(REPOSITORY / "examples" / "recipes" / "move_laravel_jobs.php", shop)
    variables = os.environ | {"DELAY_QUEUE": server.url}
    moving = ["php", str(shop / "move_laravel_jobs.php"), f"sqlite:{shop / 'shop.sqlite'}"]
    assert run(moving, environment=variables) == "moved 2 jobs\n"
    assert run([*program, "work", server.url]) == "closed order 1001\ndelayed 1 of 1\n"
