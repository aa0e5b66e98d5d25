"""A job as the original keeps it: a msgpack map of five members, named "1" to "5".

Parsed by hand: the map has two types of values, and an operator who imports an old installation once should not have to
install a library for it.
"""

from typing import Final, NamedTuple

from delayqueue.domain.job import MAX_DUE_S, MAX_ID_BYTES, MAX_TOPIC_BYTES, MAX_TTR_S

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
