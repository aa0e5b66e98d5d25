"""Ranges of due times: finding and taking the jobs in them."""

from collections.abc import Sequence
from typing import NamedTuple

from delayqueue.domain.body import body_of
from delayqueue.errors import Code
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.record import parse_record, text
from delayqueue.store.types import Found, Position, Range, Taken, TakeReply


class RangePage(NamedTuple):
    """Jobs among the `looked` entries that were read; the mark behind them, and whether they were the last."""

    jobs: list[Found]
    mark: str
    is_end: bool
    looked: int


class Ranges:
    """The ranges of one bucket at a time. All raise Unavailable if Redis does not answer or refuses."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store

    async def find(  # noqa: PLR0913  # where to search, and for what
        self,
        bucket: int,
        topic: str,
        state: str,
        due: Range,
        *,
        behind: Position | None,
        limit: int,
        first: str = "",
        last: str = "",
    ) -> RangePage:
        """Find jobs in a state (as range.lua names them) after a position, among `limit` entries of its index.

        Delayed ones are the first after it, in order. The others are found among the entries of their index from the
        mark `first` to the mark `last`, "" = its start, its end.
        """
        known = (behind.due_ms, behind.id) if behind else ("", "")
        marks = (first.encode("latin-1"), last.encode("latin-1"))
        reply = await self._store.run("range", bucket, [topic, state, *due, *known, limit, *marks])
        mark, is_end, found = reply.results
        jobs = [
            Found(Position(int(found[i + 1]), found[i]), bucket, found[i + 2])
            for i in range(0, len(found), 3)
        ]
        return RangePage(jobs, mark.decode("latin-1"), is_end == 1, reply.looked)

    async def take(self, bucket: int, topic: str, due: Range, ids: Sequence[bytes]) -> TakeReply:
        """Remove and return those of the jobs that are delayed or ready, and due in the range."""
        results = (await self._store.run("take", bucket, [topic, *due, *ids])).results
        jobs = [
            _taken(job_id, *result)
            for job_id, result in zip(ids, results, strict=False)
            if not isinstance(result, int)
        ]
        return TakeReply(len(results), results.count(Code.NO_SUCH_JOB), jobs)


def _taken(raw_id: bytes, raw: bytes, run: bytes) -> Taken:
    record = parse_record(raw)
    return Taken(
        topic=text(record.topic),
        id=text(raw_id),
        body=body_of(record.body),
        due_ms=record.due_ms,
        raw_id=raw_id,
        record=raw,
        run=run,
    )
