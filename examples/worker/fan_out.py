"""What happens when an order is paid: an invoice, a parcel, a mail, one after the other.

delay-queue worker fan_out:worker        does it; run as many as you like
python fan_out.py stock ITEM COUNT       add that many to the stock
python fan_out.py paid ORDER ITEM MAIL   an order is paid

If a handler fails, the ones after it wait: a customer gets no mail without a parcel. The next attempt begins with the
first handler again, so each one checks what it has already done.

The queue is at $DELAYQUEUE_URL, the shop is the file $SHOP. $RETRY replaces the times between attempts.
"""

import json
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass

from delayqueue import Client, Worker
from delayqueue.worker import Next, ReservedJob

SHOP = os.environ.get("SHOP", "shop.db")
RETRY = os.environ.get("RETRY", "10s,1m,10m,1h,6h").split(",")
TABLES = """
    CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, count INTEGER);
    CREATE TABLE IF NOT EXISTS invoices (id TEXT PRIMARY KEY);
    CREATE TABLE IF NOT EXISTS parcels (id TEXT PRIMARY KEY, item TEXT);
    CREATE TABLE IF NOT EXISTS mails (id TEXT PRIMARY KEY, address TEXT);
"""

log = logging.getLogger(__name__)
queue = Client()
worker = Worker()


@dataclass(frozen=True)
class Order:
    """An order that was paid."""

    id: str
    item: str
    mail: str

    @classmethod
    def of(cls, job: ReservedJob) -> "Order":
        return cls(**json.loads(job.body))


class OutOfStock(Exception):
    """There is none now; there will be some again."""


@contextmanager
def shop() -> Generator[sqlite3.Connection, None, None]:
    """The shop's database, in a transaction: if a handler fails, what it has begun is undone."""
    with closing(sqlite3.connect(SHOP)) as database:
        database.executescript(TABLES)
        with database:
            yield database


def stock(item: str, count: int) -> None:
    with shop() as database:
        add = "INSERT INTO stock VALUES (?, ?) ON CONFLICT DO UPDATE SET count = count + ?"
        database.execute(add, (item, count, count))


def paid(order: Order) -> None:
    queue.push("order-paid", json.dumps(asdict(order)), id=f"paid-{order.id}", retry=RETRY)


def invoice(job: ReservedJob) -> None:
    with shop() as database:
        database.execute("INSERT OR IGNORE INTO invoices VALUES (?)", (Order.of(job).id,))


def pack(job: ReservedJob) -> None:
    order = Order.of(job)
    with shop() as database:
        new = database.execute(
            "INSERT OR IGNORE INTO parcels VALUES (?, ?)", (order.id, order.item)
        ).rowcount
        take = "UPDATE stock SET count = count - 1 WHERE item = ? AND count > 0"
        if new and not database.execute(take, (order.item,)).rowcount:
            raise OutOfStock(order.item)


def mail(job: ReservedJob) -> None:
    order = Order.of(job)
    with shop() as database:
        # yours: send it with the order as its key, so that no mail is sent twice
        database.execute("INSERT OR IGNORE INTO mails VALUES (?, ?)", (order.id, order.mail))


worker.on("order-paid", [invoice, pack, mail])


@worker.middleware
async def timed(job: ReservedJob, go_on: Next) -> None:
    """Runs around the handlers of every job."""
    began = time.monotonic()
    await go_on(job)
    log.info("%s took %.3f s", job.id, time.monotonic() - began)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["stock", item, count]:
            stock(item, int(count))
        case ["paid", number, item, address]:
            paid(Order(number, item, address))
        case _:
            sys.exit(__doc__)
