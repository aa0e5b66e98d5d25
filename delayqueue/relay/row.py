"""A row of the outbox, and the request that it stands for."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from delayqueue.client.pushes import FIELDS, Job
from delayqueue.client.times import seconds
from delayqueue.domain import push_rules
from delayqueue.domain.job import IfExists
from delayqueue.domain.push_rules import NEW_ID, stripped

# the fields of a job that have no column, nor belong to the relay
OPTIONS: Final = {*FIELDS} - {"id", "topic", "body", "delay", "due", "idempotency_key"}


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A row of the outbox.

    `age_s`: since it was inserted, by the database's clock, as `delay` counts. `next_seq`: the row of its id behind it.
    """

    seq: int
    created_ms: int | str
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
        """Whether the row cancels, instead of pushing: one without an id cancels by tag."""
        return bool(self.cancel) or self.id is None

    @property
    def wants_id(self) -> bool:
        """Whether the row pushes a job that has no id yet."""
        return self.id == NEW_ID and not self.cancel

    @property
    def group(self) -> str | None:
        """The group of its job; None if it has none, or one that no job can have."""
        with suppress(KeyError, TypeError, ValueError, RecursionError):
            return push_rules.group("group", json.loads(self.options or "{}")["group"])
        return None

    def check_names(self, most_chars: int) -> None:
        """Raises ValueError if rows of the job may have its id in another form, or there is no such job to cancel.

        The database orders rows by their ids as they are, and the server strips them. It may have cut names that are
        longer than `most_chars`.
        """
        names = {"id": self.id, "topic": self.topic, "cancel_tag": self.cancel_tag}
        for column, value in names.items():
            if value and len(value) > most_chars:
                raise ValueError(
                    f"{column}: {len(value)} characters, at most {most_chars}: the database may have cut it"
                )
        if self.id is None:
            return
        name = stripped(self.id)
        if not name:
            raise ValueError("id: must not be empty")
        if self.id != name:
            raise ValueError(
                f"id {self.id!r}: no white space at its ends: the server would take it for another id"
            )
        if name == NEW_ID:
            raise ValueError(f"id: {NEW_ID} names no job to cancel")

    def job(self, remember_s: float) -> Job:
        """The job that it pushes, which the server remembers for at least `remember_s` after its end.

        Raises an error of any kind if it has a field that no job has, or a value that no field can have.
        """
        if self.delay_s and self.due_s is not None:
            raise ValueError("delay and due exclude each other")
        options: Any = json.loads(self.options or "{}")
        if not isinstance(options, dict):
            raise TypeError("options: must be a JSON object")
        if unknown := sorted(options.keys() - OPTIONS):
            raise ValueError(f"options: no field {', '.join(unknown)}")
        given = push_rules.given(options)
        usual = IfExists.REPLACE if "max_wait" in given else IfExists.KEEP
        fields: dict[str, Any] = {"if_exists": usual} | given
        retain_s = seconds(fields.pop("retain", 0))
        job = Job(
            **fields,
            id=self.id or "",
            topic=self.topic or "",
            body=self.body or "",
            delay=max((self.delay_s or 0) - self.age_s, 0) if self.due_s is None else None,
            due=self.due_s,
            retain=max(retain_s, remember_s) if retain_s >= 0 else retain_s,  # which is refused
            # if the table was dropped and made again, its ids begin at 1 again
            idempotency_key=f"outbox {self.seq}@{self.created_ms}",
        )
        job.request()
        return job
