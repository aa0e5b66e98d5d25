"""Reads dead letters page by page. Read-only."""

import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from pydantic import TypeAdapter

from delayqueue.store.cursor import Mark, read_cursor, read_place, write_cursor
from delayqueue.store.record import parse_run, text
from delayqueue.store.store import Store

MOST: Final = 10_000  # per page
PIECE: Final = 500  # entries that a call reads: about 2 ms of the store's time
TOPICS_PER_CALL: Final = 500
BEHIND: Final = "\0"  # sorts after a topic and before the next one
# a topic, and the mark of the last entry that was read of it
SPOT: Final = TypeAdapter(tuple[str, Mark])


class DeadLetter(NamedTuple):
    """Why a job is buried, and since when."""

    topic: str
    id: str
    message: str
    buried_ms: int


class DeadLetterPages:
    """Each page comes with the cursor of the next one. Raises Unavailable if the store does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self,
        topics: Sequence[str],
        what: tuple[object, ...],
        cursor: str,
        is_wanted: Callable[[DeadLetter], bool] = lambda _: True,
    ) -> tuple[list[DeadLetter], str]:
        """The wanted ones among MOST dead letters, or a few more, of these sorted topics; and the next cursor.

        In no particular order. The cursor is "" if none of the next MOST is wanted, and there are no more than these.
        A job that stays buried is on a page, whatever becomes of others meanwhile. Raises Invalid if the cursor does
        not come from a listing of the same `what`.
        """
        bucket, spot = read_cursor(cursor, what)
        topic, mark = read_place(SPOT, spot or '["", ""]')
        letters: list[DeadLetter] = []
        looked = 0
        while bucket < self._store.buckets.count:
            names = topics[bisect_left(topics, topic) :][:TOPICS_PER_CALL]
            if not names:
                bucket, topic, mark = bucket + 1, "", ""
                continue
            if names[0] != topic:
                mark = ""
            reply = await self._store.bucket(bucket).run(
                "buried", [mark.encode("latin-1"), PIECE, *names]
            )
            done, (after, found) = reply.looked, reply.results
            more = _letters(names, found)
            wanted = [letter for letter in more if is_wanted(letter)]
            # a full page looks on, to see whether there are more
            if (wanted and looked >= MOST) or looked >= 2 * MOST:
                return letters, write_cursor(what, bucket, json.dumps([topic, mark]))
            mark = after.decode("latin-1")
            letters += wanted
            looked += len(more)
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
