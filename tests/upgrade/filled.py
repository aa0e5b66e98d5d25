"""A store that an earlier version has filled: its keys and its answers, as `fill.py` saved them.

A test finds it as if it had been filled a minute to an hour before: all times are moved by a whole number of hours,
so that the slots of a wheel stay as they are. The next time of a calendar is then at another hour than its own.
"""

import json
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from redis.asyncio import Redis

from tests.api_client import Api
from tests.store.contents import ENDED, RECORD

Json = dict[str, Any]

FOLDER: Final = Path(__file__).parent / "filled"
HOUR_MS: Final = 3_600_000
LEAST_AGE_MS: Final = 60_000
TIME: Final = re.compile(rb"(?<!\d)1[78]\d{11}(?!\d)")  # times in these years, in ms
EARLIEST_MS: Final = 1_700_000_000_000
BASE: Final = 90
NOTHING: Final[tuple[Any, ...]] = (None, "", [], 0)
# the places of times in a record's head: when it is due, when it was pushed, when it expires
TIMES: Final = (slice(1, 8), slice(8, 15), slice(22, 29))


@dataclass(frozen=True)
class Layout:
    """How the data is laid out."""

    scheduler: str
    buckets: int
    wheel_slots: int = 0

    @property
    def name(self) -> str:
        return f"{self.scheduler}-{self.buckets}"

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.json"

    def settings(self) -> Json:
        """The server's settings."""
        told: Json = {"scheduler": self.scheduler, "bucket_size": self.buckets}
        return told | ({"wheel_slots": self.wheel_slots} if self.wheel_slots else {})


LAYOUTS: Final = (
    Layout("zset", 1),
    Layout("zset", 4),
    Layout("wheel", 4, wheel_slots=3600),
)


class Filled:
    """The saved store with this layout; its times are in the last hour."""

    def __init__(self, layout: Layout) -> None:
        self._saved: Json = json.loads(layout.path.read_text(encoding="ascii"))
        self._slot_ms = HOUR_MS // (layout.wheel_slots or 1)
        age_ms = int(time.time() * 1000) - self._saved["filled_ms"]
        self._hours = (age_ms - LEAST_AGE_MS) // HOUR_MS
        self.time_ms: int = self._saved["filled_ms"] + self._hours * HOUR_MS
        self.receipts: dict[str, str] = self._saved["receipts"]

    def answer(self, path: str) -> Any:
        """The answers of the earlier version."""
        return self._later(self._saved["answers"][path])

    async def load(self, redis: Redis, receiver_port: int) -> None:
        """Write it into an empty database; the webhooks go to that port."""
        at = str(self._saved["receiver_port"]).encode()
        async with redis.pipeline(transaction=False) as pipeline:
            for key, (kind, value) in self._saved["keys"].items():
                name = _raw(key)
                if kind == "hash":
                    fields = self._hash(name, value)
                    if name.endswith(b":subscribers"):
                        to = b":%d/" % receiver_port
                        fields = {f: v.replace(b":%s/" % at, to) for f, v in fields.items()}
                    pipeline.hset(name, mapping=fields)
                elif kind == "zset":
                    pipeline.zadd(name, self._scores(name, value))
                elif kind == "list":
                    pipeline.rpush(name, *map(_raw, value))
                else:
                    pipeline.sadd(name, *map(_raw, value))
            await pipeline.execute()

    def _hash(self, key: bytes, value: dict[str, str]) -> dict[Any, Any]:
        family = key.partition(b"}:")[2].partition(b":")[0]
        raw = {_raw(name): _raw(text) for name, text in value.items()}
        if family == b"rounds":
            return {
                b"%d" % (int(hour) + self._hours) if hour.isdigit() else hour: count
                for hour, count in raw.items()
            }
        later = {b"job": self._record, b"ended": self._ended}.get(family, self._text)
        return {name: later(text) for name, text in raw.items()}

    def _scores(self, key: bytes, value: dict[str, float]) -> dict[Any, Any]:
        is_slot = key.partition(b"}:")[2].startswith(b"slot:")
        moved_ms = self._hours * (self._slot_ms if is_slot else HOUR_MS)
        return {
            _raw(member): score + moved_ms if is_slot or score > EARLIEST_MS else score
            for member, score in value.items()
        }

    def _text(self, text: bytes) -> bytes:
        return TIME.sub(lambda time_ms: b"%d" % (int(time_ms[0]) + self._hours * HOUR_MS), text)

    def _record(self, record: bytes) -> bytes:
        head = RECORD.match(record)
        assert head, record
        later = bytearray(record)
        for place in TIMES if head[1] else TIMES[:2]:
            time_ms = _number(record[place])
            if time_ms:
                later[place] = _digits(time_ms + self._hours * HOUR_MS, place.stop - place.start)
        return bytes(later)

    def _ended(self, ended: bytes) -> bytes:
        head = ENDED.match(ended)
        assert head, ended
        record_at = head.end() + int(head[3]) + int(head[4])
        return self._text(ended[:record_at]) + self._record(ended[record_at:])

    def _later(self, answer: Any) -> Any:
        """The value with all unix times moved."""
        match answer:
            case dict():
                return {name: self._later(value) for name, value in answer.items()}
            case list():
                return [self._later(value) for value in answer]
            case int() | float() if answer > EARLIEST_MS / 1000:
                return round(answer + self._hours * HOUR_MS / 1000, 3)
            case _:
                return answer


async def listed(api: Api, topic: str) -> list[str]:
    """The ids of all pages."""
    found: set[str] = set()
    cursor = ""
    while True:
        page = (await api.call("/list", {"topic": topic, "limit": 1000, "cursor": cursor})).ok()
        found |= {job["id"] for job in page["jobs"]}
        cursor = page["cursor"]
        if not cursor:
            return sorted(found)


async def said(api: Api, ids: Iterable[str]) -> dict[str, Json]:
    """What /get says about each id, without empty members."""
    wanted = [*ids]
    jobs = (await api.call("/get", {"ids": wanted})).ok()
    return {
        job_id: {name: value for name, value in (job or {}).items() if value not in NOTHING}
        for job_id, job in zip(wanted, jobs, strict=True)
    }


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _number(digits: bytes) -> int:
    number = 0
    for digit in digits:
        number = number * BASE + digit - 33
    return number


def _digits(number: int, width: int) -> bytes:
    return bytes(number // BASE**place % BASE + 33 for place in range(width - 1, -1, -1))
