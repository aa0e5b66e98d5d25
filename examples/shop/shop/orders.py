"""The orders of the shop, in a file of SQLite."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

State = Literal["unpaid", "paid", "closed"]
TABLE = """CREATE TABLE IF NOT EXISTS orders
    (id TEXT PRIMARY KEY, item TEXT, cents INTEGER, state TEXT DEFAULT 'unpaid')"""


class NoSuchOrder(LookupError):
    """There is no order with this id."""


@dataclass(frozen=True)
class Order:
    """What a customer ordered, and its state."""

    id: str
    item: str
    cents: int
    state: State = "unpaid"


class Orders:
    """All orders. Threads and processes may share the file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @classmethod
    def of_the_shop(cls) -> "Orders":
        return cls(Path(os.environ.get("SHOP", "shop.db")))

    def add(self, order: Order) -> None:
        with self._database() as database:
            row = (order.id, order.item, order.cents, order.state)
            database.execute("INSERT INTO orders VALUES (?, ?, ?, ?)", row)

    def find(self, order_id: str) -> Order:
        """Raises NoSuchOrder if there is none."""
        with self._database() as database:
            return _find(database, order_id)

    def settle(self, order_id: str, state: State) -> Order:
        """Pay or close an unpaid order; returns the order as it is now. The second call changes nothing."""
        with self._database() as database:
            update = "UPDATE orders SET state = ? WHERE id = ? AND state = 'unpaid'"
            database.execute(update, (state, order_id))
            return _find(database, order_id)

    @contextmanager
    def _database(self) -> Generator[sqlite3.Connection, None, None]:
        """A connection, in a transaction."""
        with closing(sqlite3.connect(self._file)) as database, database:
            database.execute(TABLE)
            yield database


def _find(database: sqlite3.Connection, order_id: str) -> Order:
    query = "SELECT id, item, cents, state FROM orders WHERE id = ?"
    row = database.execute(query, (order_id,)).fetchone()
    if row is None:
        raise NoSuchOrder(order_id)
    return Order(*row)
