"""A program that commits and rolls back at random, for row 41: python -m faults.shop KIND PORT.

In each transaction it writes to an outbox, and the same to a ledger: what is committed there must happen. Half of the
jobs are due at once, each with an id of its own. The others are due tomorrow, and pushed and cancelled in turn.
"""

import random
import sys
import time
import uuid
from typing import Any, Final

import psycopg
import pymysql

from tests.relay.databases import KINDS

OUTBOX: Final = "delay_queue_outbox"
LEDGER: Final = "CREATE TABLE ledger (n {serial} PRIMARY KEY, job VARCHAR(64), body VARCHAR(64))"
SERIAL: Final = {"mariadb": "BIGINT AUTO_INCREMENT", "postgresql": "BIGSERIAL"}
NOW, LATER = "now", "later"  # its topics
TURNING: Final = [f"turning-{number}" for number in range(20)]
DAY_S: Final = 86_400
OPTIONS: Final = '{"ttr": 5}'
ROLLED_BACK: Final = 0.3  # of all transactions


def main(kind: str, port: int) -> None:
    """Work until it is killed, whatever the database does."""
    while True:
        try:
            connection = KINDS[kind].connected(port)
            while True:
                transaction(connection)
        except (psycopg.Error, pymysql.MySQLError):
            time.sleep(0.05)


def transaction(connection: Any) -> None:
    """Order something, or change an order. An empty body in the ledger is a cancel."""
    cursor = connection.cursor()
    body = uuid.uuid4().hex
    if random.random() < 0.5:
        job, topic, delay_s = uuid.uuid4().hex, NOW, 0
    else:
        job, topic, delay_s = random.choice(TURNING), LATER, DAY_S
        cursor.execute("SELECT body FROM ledger WHERE job = %s ORDER BY n DESC LIMIT 1", (job,))
        (last,) = cursor.fetchone() or ("",)
        body = "" if last else body
    cursor.execute("INSERT INTO ledger (job, body) VALUES (%s, %s)", (job, body))
    if body:
        insert = (
            f"INSERT INTO {OUTBOX} (topic, id, body, delay, options) VALUES (%s, %s, %s, %s, %s)"
        )
        cursor.execute(insert, (topic, job, body, delay_s, OPTIONS))
    else:
        cursor.execute(f"INSERT INTO {OUTBOX} (id, cancel) VALUES (%s, TRUE)", (job,))
    if random.random() < ROLLED_BACK:
        connection.rollback()
    else:
        connection.commit()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
