"""Moves jobs between buckets: into a transfer, into the other bucket; then the transfer is dropped."""

from collections.abc import Sequence
from typing import NamedTuple

from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.record import text
from delayqueue.store.types import Change


class Transfer(NamedTuple):
    """Jobs on their way; number 0 = none."""

    number: int
    parts: Sequence[bytes]
    change: Change


class IdPage(NamedTuple):
    """A page of a bucket's ids; cursor "0" = end. `total` is the number of ids in all.

    The cursor belongs to that `process` of the store, and is meaningless to another one.
    """

    cursor: str
    ids: list[str]
    total: int
    process: bytes


class Transfers:
    """One method per script, as in BucketStore. All raise Unavailable if Redis does not answer or refuses."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store

    async def export(self, source: int, target: int, ids: Sequence[str]) -> Transfer:
        """Take the jobs with these ids out of `source`. If a transfer is on its way already, it is returned instead."""
        reply = await self._store.run("export", source, [target, *ids])
        number, parts = reply.results
        return Transfer(number, parts, reply.change)

    async def import_(self, source: int, target: int, transfer: Transfer) -> Change:
        """Put a transfer's jobs into `target`, unless it already has them."""
        args = [source, transfer.number, *transfer.parts]
        return (await self._store.run("import", target, args)).change

    async def confirm(self, source: int, target: int, transfer: Transfer) -> None:
        """The transfer has arrived."""
        await self._store.run("confirm", source, [target, transfer.number])

    async def under_way(self, source: int) -> list[int]:
        """The buckets that have transfers on their way to them."""
        return (await self._store.run("exports", source, [])).results

    async def ids(self, bucket: int, kind: str, cursor: str) -> IdPage:
        """A page of the ids in a bucket: of jobs (`job`) or of kept results (`ended`)."""
        after, ids, *rest = (await self._store.run("ids", bucket, [kind, cursor])).results
        return IdPage(after.decode(), [text(job_id) for job_id in ids], *rest)
