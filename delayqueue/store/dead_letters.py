"""Reads dead letters page by page. Read-only."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from delayqueue.errors import Invalid
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.record import parse_run, text
from delayqueue.store.cursor import BAD, read_cursor, write_cursor

MOST: Final = 10_000  # per page
PIECE: Final = 500  # entries that a call reads: about 2 ms of the store's time
TOPICS_PER_CALL: Final = 100
BEHIND: Final = "\0"  # sorts after a topic and before the next one


class DeadLetter(NamedTuple):
    """Why a job is buried, and since when."""

    topic: str
    id: str
    message: str
    buried_ms: int


class DeadLetters:
    """Each page comes with the cursor of the next one. Raises Unavailable if the store does not answer."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store

    async def page(
        self, topics: Sequence[str], what: tuple[object, ...], cursor: str
    ) -> tuple[list[DeadLetter], str]:
        """The dead letters of these sorted topics, MOST or a few more; and the next cursor, "" at the end.

        In no particular order. Raises Invalid if the cursor does not come from a listing of the same `what`.
        """
        place, spot = read_cursor(cursor, what)
        bucket, topic = _read_spot(spot)
        letters: list[DeadLetter] = []
        while bucket < self._store.buckets.count:
            names = topics[bisect_left(topics, topic) :][:TOPICS_PER_CALL]
            if not names:
                bucket, topic, place = bucket + 1, "", 0
                continue
            if names[0] != topic:
                place = 0
            is_full = len(letters) >= MOST  # then only check whether there are more
            limit = 1 if is_full else PIECE
            done, after, found = await self._store.run("buried", bucket, [place, limit, *names])
            if found and is_full:
                return letters, write_cursor(what, place, f"{bucket} {topic}")
            place = after
            letters += _letters(names, found)
            topic = names[done] if done < len(names) else names[-1] + BEHIND
        return letters, ""


def _letters(topics: Sequence[str], found: Sequence[bytes]) -> list[DeadLetter]:
    rows = (found[i : i + 4] for i in range(0, len(found), 4))
    return [
        DeadLetter(topics[int(number) - 1], text(raw_id), _message(run), int(buried_ms))
        for number, raw_id, buried_ms, run in rows
    ]


def _message(raw_run: bytes) -> str:
    notes = parse_run(raw_run).notes
    return notes[-1].message if notes else ""


def _read_spot(text: str) -> tuple[int, str]:
    """Parse a spot. Raises Invalid if it cannot have been written."""
    if not text:
        return 0, ""
    bucket, _, topic = text.partition(" ")
    if not (bucket.isdecimal() and bucket.isascii() and len(bucket) <= len("9999")):
        raise Invalid(BAD)
    return int(bucket), topic
