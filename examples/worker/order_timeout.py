"""Closes orders that are not paid within 30 minutes.

delay-queue worker order_timeout:worker   closes them; run as many as you like
python order_timeout.py place ORDER       a customer orders
python order_timeout.py pay ORDER         and pays: the job is cancelled
python order_timeout.py show ORDER        unpaid, paid or closed

The queue is at $DELAYQUEUE_URL, the orders are in the file $SHOP. $UNPAID_S replaces the 30 minutes.
"""

import os
import sqlite3
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager

from delayqueue import Client, Worker
from delayqueue.worker import ReservedJob

SHOP = os.environ.get("SHOP", "shop.db")
UNPAID_S = float(os.environ.get("UNPAID_S", "1800"))

queue = Client()
worker = Worker()


@contextmanager
def shop() -> Generator[sqlite3.Connection, None, None]:
    """The shop's database, in a transaction."""
    with closing(sqlite3.connect(SHOP)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, state TEXT)")
        yield database


def settle(order: str, state: str) -> bool:
    """Pay or close an order; returns whether it was unpaid until now. The second call changes nothing."""
    with shop() as database:
        update = "UPDATE orders SET state = ? WHERE id = ? AND state = 'unpaid'"
        return database.execute(update, (state, order)).rowcount == 1


def place(order: str) -> None:
    # the job first: one without an order does no harm, an order without a job would never be closed
    queue.push("order-timeout", order, delay=UNPAID_S, tags=[f"order:{order}"])
    with shop() as database:
        database.execute("INSERT INTO orders VALUES (?, 'unpaid')", (order,))


def pay(order: str) -> None:
    if not settle(order, "paid"):
        sys.exit(f"order {order} is not to be paid any more")
    queue.cancel(f"order:{order}")


def state(order: str) -> str:
    with shop() as database:
        (found,) = database.execute("SELECT state FROM orders WHERE id = ?", (order,)).fetchone()
        return str(found)


@worker.on("order-timeout")
def close(job: ReservedJob) -> None:
    """The job may be delivered twice, and at the moment the customer pays."""
    if settle(job.body, "closed"):
        print("closed order", job.body, flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["place", order]:
            place(order)
        case ["pay", order]:
            pay(order)
        case ["show", order]:
            print(state(order))
        case _:
            sys.exit(__doc__)
