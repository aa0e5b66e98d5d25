"""The calls of subscribers, over all buckets. Read-only."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from delayqueue.store.census import pieces
from delayqueue.store.record import text
from delayqueue.store.store import Store

NAMES_PER_CALL: Final = 100  # about 3 ms of the store's time
HOUR_MS: Final = 3_600_000
HOURS: Final = 24  # this one and those before, as kept by record.lua
FAILURES: Final = 5  # in an answer, newest first


class Failure(NamedTuple):
    """A failed call: when, with which job, and its message, as far as it is kept."""

    at_ms: int
    job_id: str
    message: str


@dataclass(slots=True)
class SubscriberCalls:
    """A subscriber's calls within a day, their total length, and the last failures."""

    succeeded: int = 0
    failed: int = 0
    took_ms: int = 0
    failures: list[Failure] = field(default_factory=list)

    def add(self, hour: int, counts: Sequence[bytes], failures: Sequence[bytes]) -> None:
        """Add one bucket's part."""
        numbers = {"succeeded": 0, "failed": 0, "ms": 0}
        for name, number in zip(counts[::2], counts[1::2], strict=True):
            what, _, of_hour = name.decode().partition(" ")
            if int(of_hour) > hour - HOURS:
                numbers[what] += int(number)
        self.succeeded += numbers["succeeded"]
        self.failed += numbers["failed"]
        self.took_ms += numbers["ms"]
        self.failures += map(_failure, failures)
        self.failures = sorted(self.failures, reverse=True)[:FAILURES]


async def calls_of(store: Store, names: Sequence[str]) -> dict[str, SubscriberCalls]:
    """The calls of these subscribers. Raises Unavailable if the store does not answer."""
    found = {name: SubscriberCalls() for name in names}
    for bucket in store.in_force:
        for piece in pieces(names, NAMES_PER_CALL):
            reply = await bucket.run("calls", piece)
            parts, hour = reply.results, reply.now_ms // HOUR_MS
            for name, counts, failures in zip(piece, parts[::2], parts[1::2], strict=True):
                found[name].add(hour, counts, failures)
    return found


def _failure(written: bytes) -> Failure:
    found: dict[str, Any] = json.loads(text(written))
    return Failure(int(found["at"]), found["id"], found["message"])
