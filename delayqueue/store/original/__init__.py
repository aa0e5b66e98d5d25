"""What ouqiang/delay-queue and php-cpm/delay-queue keep in their Redis, and how to import it.

The keys of an installation, and those that an import adds beside them:

| key               | type   | what                                                                                  |
| ----------------- | ------ | ------------------------------------------------------------------------------------- |
| ID                | string | a packed job (below); php-cpm/delay-queue puts `dq_key_` before the id                |
| dq_bucket_N       | zset   | id -> unix second: when it is due, or when its TTR expires                            |
| dq_queue_TOPIC    | list   | ids that are ready                                                                    |
| dq_import:lock    | string | the import that is working here; expires                                              |
| dq_import:moving  | hash   | id -> "" = may have been staged in the destination, or due ms = has been taken        |
| dq_import:to      | string | the destination of those                                                              |
| dq_import:aside   | hash   | id -> why it was not imported, line end, its record                                   |
| dq_import:probe:X | an entry of the first bucket that a running old server removes within a second         |

A job there is a msgpack map of five members, named "1" to "5". It is parsed by hand: the map has two types of values,
and an operator who imports an old installation once should not have to install a library for it.

The original has no states: a job is a record, and its id is in a bucket (sorted set, by a time) or in a ready list. Its
timer moves an id whose time has come from its bucket to the list of the job's topic, first adding, then removing. A pop
takes the id off the list, reads the record and adds the id to a bucket again, with the time at which the TTR expires. A
finish only drops the record; the id stays until something comes across it. So an id may be in several places, or, after
a crash between two of these steps, in none.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from delayqueue.domain.job import MAX_DUE_S, MAX_ID_BYTES, MAX_TOPIC_BYTES, MAX_TTR_S
from delayqueue.store.keys import literal

LOCK: Final = "dq_import:lock"
MOVING: Final = "dq_import:moving"
DESTINATION: Final = "dq_import:to"
ASIDE: Final = "dq_import:aside"

MOST_BUCKETS: Final = 1024
PREFIXES: Final = {"": "ouqiang/delay-queue", "dq_key_": "php-cpm/delay-queue"}


class Names(NamedTuple):
    """The key names of an installation."""

    key_prefix: str  # of each job's key, before its id
    bucket_name: str  # with %d
    queue_name: str  # with %s

    def buckets(self) -> list[str]:
        """The keys of all buckets that there can be."""
        numbers = range(1, MOST_BUCKETS + 1)
        return [self.bucket_name.replace("%d", str(number)) for number in numbers]

    def queue(self, topic: str) -> bytes:
        """The key of a topic's ready list."""
        return self.queue_name.replace("%s", topic).encode()

    def queue_pattern(self) -> str:
        """The SCAN pattern for ready lists."""
        return literal(self.queue_name).replace("%s", "*")

    def record_pattern(self) -> str:
        """The SCAN pattern for records."""
        return f"{literal(self.key_prefix)}*"


# All possible starts of a packed job: a map of five, whose first key is "1".
SIGNATURE: Final = b"\x85\xa11"

# first byte -> how many bytes of length, or of value, follow
_TEXT_HEADS: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_UNSIGNED_HEADS: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_SIGNED_HEADS: Final = {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}


class Packed(NamedTuple):
    """A job of the original. `due_s` is its `delay`: the unix time at which it is due."""

    topic: str
    id: str
    due_s: int
    ttr_s: int
    body: str


def unpack(raw: bytes, job_id: bytes) -> Packed:
    """Parse the job with that id. The message of ValueError says why it cannot be imported."""
    reader = _Reader(raw)
    try:
        members = reader.members()
        job = Packed(*(members[str(number)] for number in range(1, 6)))  # type: ignore[arg-type]
    except (IndexError, KeyError, TypeError) as error:
        raise ValueError("not a packed job") from error
    _check(job, job_id)
    return job


def _check(job: Packed, job_id: bytes) -> None:
    kinds = [type(value) for value in job]
    if kinds != [str, str, int, int, str]:
        raise ValueError("not a packed job")
    if job.id.encode() != job_id:
        raise ValueError("the job has another id than its key")
    if len(job_id) > MAX_ID_BYTES:
        raise ValueError(f"id: {len(job_id)} bytes, at most {MAX_ID_BYTES}")
    if not 1 <= len(job.topic.encode()) <= MAX_TOPIC_BYTES:
        raise ValueError(f"topic: must have 1 to {MAX_TOPIC_BYTES} bytes")
    if "," in job.topic:
        raise ValueError("topic: has a comma, so nobody could ever pop it")
    if not 1 <= job.ttr_s <= MAX_TTR_S:
        raise ValueError(f"ttr {job.ttr_s}: must be 1 to {MAX_TTR_S} seconds")
    if not 0 <= job.due_s <= MAX_DUE_S:
        raise ValueError(f"delay {job.due_s}: must be a unix time in seconds")


class _Reader:
    """Parses values from the front. Raises IndexError if bytes are missing, ValueError for a value that no job has."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def members(self) -> dict[object, object]:
        """The whole map."""
        head = self._number(1)
        if head >> 4 != 0x8:
            raise ValueError("not a packed job")
        return {self._value(): self._value() for _ in range(head & 0x0F)}

    def _value(self) -> str | int:
        head = self._number(1)
        if head <= 0x7F:
            return head
        if head >= 0xE0:
            return head - 0x100
        if head >> 5 == 0b101:
            return self._text(head & 0x1F)
        if head in _TEXT_HEADS:
            return self._text(self._number(_TEXT_HEADS[head]))
        if head in _UNSIGNED_HEADS:
            return self._number(_UNSIGNED_HEADS[head])
        if head in _SIGNED_HEADS:
            return self._number(_SIGNED_HEADS[head], signed=True)
        raise ValueError(f"not a packed job: a value of type 0x{head:02x}")

    def _text(self, length: int) -> str:
        return self._bytes(length).decode()  # UnicodeDecodeError is a ValueError

    def _number(self, length: int, *, signed: bool = False) -> int:
        return int.from_bytes(self._bytes(length), "big", signed=signed)

    def _bytes(self, length: int) -> bytes:
        part = self._raw[self._at : self._at + length]
        if len(part) < length:
            raise IndexError(length)
        self._at += length
        return part


# The clocks of the old servers and of Redis, whose time we use, may differ by this much.
CLOCKS_S: Final = 5


class Place(StrEnum):
    """Where a job of the original is."""

    DELAYED = "delayed"
    READY = "ready"
    RESERVED = "handed out"
    DUE = "due"  # in a bucket, for the timer to move at any moment
    LOST = "lost"  # nowhere: a step of the old server did not happen, or is about to


class Standing(NamedTuple):
    """A job's place, and when it is due for us. `free`: an old server that runs does not touch it now."""

    place: Place
    due_s: int
    free: bool


def standing(job: Packed, times_s: Iterable[float], now_s: int, *, listed: bool) -> Standing:
    """`times_s` are the id's times in the buckets, `listed` whether it is in its ready list.

    A job that was handed out is due when its TTR expires. A lost one counts as handed out just now.
    """
    times = list(times_s)
    if job.due_s > now_s:  # whatever an earlier push of this id left behind
        return Standing(Place.DELAYED, job.due_s, free=job.due_s > now_s + CLOCKS_S)
    deadlines = [time for time in times if now_s < time <= now_s + job.ttr_s + CLOCKS_S]
    if deadlines:
        return Standing(Place.RESERVED, int(max(deadlines)), free=False)
    if listed:
        return Standing(Place.READY, job.due_s, free=True)
    if any(time <= now_s for time in times):
        return Standing(Place.DUE, job.due_s, free=False)
    return Standing(Place.LOST, now_s + job.ttr_s, free=False)
