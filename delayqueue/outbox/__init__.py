"""Jobs that are committed with your data: rows of the outbox, a table that `delay-queue relay` moves to the server.

`connection` is a connection of psycopg, PyMySQL or another driver that takes %s, Django's `connection`, or a Connection
or Session of SQLAlchemy; with an AsyncSession, `await session.run_sync(outbox.push, job)`. Nothing is committed here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from delayqueue.client.jobs import Job

TABLE: Final = "delay_queue_outbox"
COLUMNS: Final = ("id", "topic", "body", "delay", "due")  # of a job; its other fields are `options`


def push(connection: Any, job: Job, *, table: str = TABLE) -> str:
    """Push the job when the transaction commits. Its `delay` counts from now. Returns its id.

    Raises TypeError or ValueError if a field cannot be what it is.
    """
    if job.idempotency_key is not None:
        raise ValueError("idempotency_key: the relay gives each row one of its own")
    request = job.request()
    row = {name: request.pop(name) for name in COLUMNS if name in request}
    _insert(connection, table, row | {"options": json.dumps(request)})
    return job.id


def cancel(connection: Any, job_id: str, *, table: str = TABLE) -> None:
    """End the job when the transaction commits, in any state; it need not exist."""
    _insert(connection, table, {"id": job_id, "cancel": True})


def cancel_tag(connection: Any, tag: str, *, topic: str | None = None, table: str = TABLE) -> None:
    """End the jobs of the tag, in one topic or in all, when the transaction commits."""
    _insert(connection, table, {"cancel_tag": tag, "topic": topic})


def _insert(connection: Any, table: str, row: dict[str, Any]) -> None:
    insert = f"INSERT INTO {table} ({', '.join(row)}) VALUES"
    if hasattr(connection, "cursor"):
        with connection.cursor() as cursor:
            cursor.execute(f"{insert} ({', '.join(['%s'] * len(row))})", tuple(row.values()))
        return
    from sqlalchemy import text  # noqa: PLC0415  # whose connection it is

    connection.execute(text(f"{insert} (:{', :'.join(row)})"), row)
