"""Jobs that are committed with your data: rows of the outbox, a table that `delay-queue relay` moves to the server.

`connection` is a connection of psycopg, PyMySQL or another driver that takes %s, Django's `connection`, or a Connection
or Session of SQLAlchemy; with an AsyncSession, `await session.run_sync(outbox.push, job)`. Nothing is committed here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from delayqueue.client.jobs import new_id
from delayqueue.domain import push_fields, push_rules
from delayqueue.domain.job import MAX_TOPIC_BYTES

if TYPE_CHECKING:
    from delayqueue.client.pushes import Job

TABLE: Final = "delay_queue_outbox"
COLUMNS: Final = ("id", "topic", "body", "delay", "due")  # of a job; its other fields are `options`


def push(connection: Any, job: Job, *, table: str = TABLE) -> str:
    """Push the job when the transaction commits. Its `delay` counts from now. Returns its id, a new one for "*".

    Raises TypeError or ValueError, and inserts nothing, if /push would refuse a field.
    """
    if job.idempotency_key is not None:
        raise ValueError("idempotency_key: the relay gives each row one of its own")
    request = push_fields.checked(job.request())
    if request["id"] == push_rules.NEW_ID:
        made = new_id()
        request["id"] = push_rules.in_group(request["group"], made) if "group" in request else made
    job_id: str = request["id"]
    row = {name: request.pop(name) for name in COLUMNS if name in request}
    _insert(connection, table, row | {"options": json.dumps(request)})
    return job_id


def cancel(connection: Any, job_id: str, *, table: str = TABLE) -> None:
    """End the job when the transaction commits, in any state; it need not exist.

    Raises TypeError or ValueError, and inserts nothing, if no job can have this id.
    """
    found = push_rules.job_id("id", job_id)
    if found == push_rules.NEW_ID:
        raise ValueError(f"id: {push_rules.NEW_ID} names no job to cancel")
    _insert(connection, table, {"id": found, "cancel": True})


def cancel_tag(connection: Any, tag: str, *, topic: str | None = None, table: str = TABLE) -> None:
    """End the jobs of the tag, in one topic or in all, when the transaction commits.

    Raises TypeError or ValueError, and inserts nothing, if no job can have this tag or topic.
    """
    found = {"cancel_tag": push_rules.tag("tag", tag)}
    if topic is not None:
        found["topic"] = push_rules.name("topic", topic, MAX_TOPIC_BYTES)
    _insert(connection, table, found)


def _insert(connection: Any, table: str, row: dict[str, Any]) -> None:
    insert = f"INSERT INTO {table} ({', '.join(row)}) VALUES"
    if hasattr(connection, "cursor"):
        with connection.cursor() as cursor:
            cursor.execute(f"{insert} ({', '.join(['%s'] * len(row))})", tuple(row.values()))
        return
    from sqlalchemy import text  # noqa: PLC0415  # whose connection it is

    connection.execute(text(f"{insert} (:{', :'.join(row)})"), row)
