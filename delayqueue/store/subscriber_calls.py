"""The calls of subscribers, over all buckets. Read-only."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from delayqueue.answers.subscribers import CallCounts, FailedCall
from delayqueue.domain.body import readable
from delayqueue.store.census import pieces
from delayqueue.store.record import text
from delayqueue.store.store import Store

NAMES_PER_CALL: Final = 100  # about 3 ms of the store's time
HOUR_MS: Final = 3_600_000
HOURS: Final = 24  # this one and those before, as kept by record.lua
FAILURES: Final = 5  # in an answer, newest first


async def calls_of(store: Store, names: Sequence[str]) -> dict[str, CallCounts]:
    """The calls of these subscribers within a day. Raises Unavailable if the store does not answer."""
    numbers = {name: Counter[str]() for name in names}
    failures: dict[str, list[FailedCall]] = {name: [] for name in names}
    for bucket in store.in_force:
        for piece in pieces(names, NAMES_PER_CALL):
            reply = await bucket.run("calls", piece)
            parts, hour = reply.results, reply.now_ms // HOUR_MS
            for name, counts, failed in zip(piece, parts[::2], parts[1::2], strict=True):
                numbers[name].update(_of_a_day(counts, hour))
                failures[name] += map(_failure, failed)
    return {name: _counts(numbers[name], failures[name]) for name in names}


def _of_a_day(counts: Sequence[bytes], hour: int) -> Counter[str]:
    """The numbers of the last HOURS, given as "KIND HOUR", number, ..."""
    numbers = Counter[str]()
    for name, number in zip(counts[::2], counts[1::2], strict=True):
        kind, _, of_hour = name.decode().partition(" ")
        if int(of_hour) > hour - HOURS:
            numbers[kind] += int(number)
    return numbers


def _counts(numbers: Counter[str], failures: list[FailedCall]) -> CallCounts:
    ended = numbers["succeeded"] + numbers["failed"]
    latest = sorted(failures, key=lambda one: (one.at, one.id, one.message), reverse=True)
    return CallCounts(
        succeeded=numbers["succeeded"],
        failed=numbers["failed"],
        took=round(numbers["ms"] / ended / 1000, 3) if ended else None,
        failures=tuple(latest[:FAILURES]),
    )


def _failure(written: bytes) -> FailedCall:
    found: dict[str, Any] = json.loads(text(written))
    return FailedCall(int(found["at"]) / 1000, readable(found["id"]), readable(found["message"]))
