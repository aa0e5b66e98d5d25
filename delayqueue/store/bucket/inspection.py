"""Checks the contents of a bucket for damage."""

from collections.abc import Iterator, Sequence
from typing import Any

from delayqueue.domain import damage
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.record import text
from delayqueue.store.types import Finding, Inspected, Piece


class Inspection:
    """One method per script, as in BucketStore. All raise Unavailable if Redis does not answer or refuses."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store

    async def inspect(
        self, bucket: int, pieces: Sequence[Piece], limit: int, *, repair: bool
    ) -> Inspected:
        """Check about `limit` entries of the pieces, the last piece first; with `repair`, damage is repaired."""
        args: list[Any] = [int(repair), limit]
        for piece in pieces:
            args += piece
        reply = await self._store.run("inspect" if repair else "examine", bucket, args)
        rest, findings, suspects = reply.results
        return Inspected(
            [Piece(name, cursor) for name, cursor in _rows(rest, 2)],
            reply.looked,
            [
                Finding(kind.decode(), text(name), text(job_id), mended == b"1")
                for kind, name, job_id, mended in _rows(findings, 4)
            ],
            [(topic, job_id) for topic, job_id in _rows(suspects, 2)],
            reply.change,
            [(topic, number) for event, topic, number, _ in reply.events if event == damage.LOST],
        )

    async def ready_ids(self, bucket: int, topic: bytes, first: int, last: int) -> list[bytes]:
        """The ids in this range of a topic's ready list, including ghosts; -1 is the last position."""
        return (await self._store.run("ready_ids", bucket, [topic, first, last])).results


def _rows(flat: Sequence[bytes], width: int) -> Iterator[Sequence[bytes]]:
    return (flat[i : i + width] for i in range(0, len(flat), width))
