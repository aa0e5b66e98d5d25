"""The limits of topics: how fast their jobs are handed out, and how many at once."""

import json
from typing import Final

from delayqueue.domain.limit import Changes, Limit
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.types import Change, Limited

FIRST: Final = 0  # the bucket where a topic is configured; the others copy its settings


class Limits:
    """Each bucket allows its share of the whole. All raise Unavailable if Redis does not answer or refuses."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store

    async def limit(
        self,
        bucket: int,
        topic: str,
        changes: Changes,
        *,
        declared: bool = False,
    ) -> Limited:
        """Set the limits in `changes` by name (domain/limit.py); None = remove the limit.

        `declared`: they come from a config file, and limits that it does not name are removed.
        """
        args = [topic, bucket, self._store.buckets.count, int(declared)]
        for name, value in changes.items():
            args += (name, "" if value is None else value)
        reply = await self._store.run("limit", bucket, args)
        code, written = reply.results
        return Limited(code, Limit.read(json.loads(written)), reply.change)

    async def all(self, bucket: int) -> dict[str, Limit]:
        """The topics that have limits."""
        settings = await self._store.topic_settings(bucket)
        return {
            topic: Limit.read(each["limit"]) for topic, each in settings.items() if "limit" in each
        }

    async def split_limits(self, bucket: int, topic: str, written: str, buckets: int) -> Change:
        """Give a topic these settings (JSON) in one of `buckets` buckets; "" = those that the bucket has."""
        args = [topic, written, bucket, buckets]
        return (await self._store.run("split_limits", bucket, args)).change
