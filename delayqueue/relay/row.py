"""A row of the outbox, and what it asks the server for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from delayqueue.client.jobs import FIELDS, Job
from delayqueue.client.times import seconds
from delayqueue.domain.job import IfExists

# the fields of a job that have no column, nor belong to the relay
OPTIONS: Final = {*FIELDS} - {"id", "topic", "body", "delay", "due", "idempotency_key"}


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A row of the outbox.

    `age_s`: since it was inserted, by the database's clock, as `delay` counts. `next_seq`: the row of its id behind it.
    """

    seq: int
    created_ms: int
    age_s: float
    id: str | None
    topic: str | None
    body: str | None
    delay_s: float | None
    due_s: float | None
    options: str | None
    cancel: bool
    cancel_tag: str | None
    next_seq: int | None

    @property
    def is_cancel(self) -> bool:
        """Whether it cancels, instead of pushing: one without an id cancels by tag."""
        return bool(self.cancel) or self.id is None

    def job(self, remember_s: float) -> Job:
        """The job that it pushes, which the server remembers for at least `remember_s` after its end.

        Raises one of NO_JOB (relay.py) if it has a field that no job has, or a value that no field can have.
        """
        options: Any = json.loads(self.options or "{}")
        if not isinstance(options, dict):
            raise TypeError("options: must be a JSON object")
        if unknown := sorted(options.keys() - OPTIONS):
            raise ValueError(f"options: no field {', '.join(unknown)}")
        fields: dict[str, Any] = {"if_exists": IfExists.KEEP} | options
        retain_s = max(seconds(fields.pop("retain", None) or 0), remember_s)
        job = Job(
            **fields,
            id=self.id or "",
            topic=self.topic or "",
            body=self.body or "",
            delay=max((self.delay_s or 0) - self.age_s, 0),
            due=self.due_s,
            retain=retain_s,
            # a table that was dropped and made again counts from 1
            idempotency_key=f"outbox {self.seq}@{self.created_ms}",
        )
        job.request()
        return job
