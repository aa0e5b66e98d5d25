"""The limits of topics: how fast and how many at once their jobs are handed out."""

import json
from collections.abc import Mapping
from typing import Final

from delayqueue.domain.limit import Limit
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.replies import change
from delayqueue.store.types import Change, Limited

FIRST: Final = 0  # the bucket where a topic is set; the others take over what stands there


class Limits:
    """Each bucket lets through its share of the whole. All raise Unavailable if Redis does not answer or refuses."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store

    async def limit(
        self,
        bucket: int,
        topic: str,
        changes: Mapping[str, float | None],
        *,
        declared: bool = False,
    ) -> Limited:
        """Set `rate`, `burst`, `concurrency`, `buried_retain_ms`, as far as they are named; None = lift it.

        `declared`: a config file says so; what it does not name is lifted.
        """
        args = [self._store.sender, topic, bucket, self._store.buckets.count, int(declared)]
        for name, value in changes.items():
            args += (name, "" if value is None else value)
        code, written, ready = await self._store.run("limit", bucket, args)
        return Limited(code, Limit.read(json.loads(written)), change(ready))

    async def all(self, bucket: int) -> dict[str, Limit]:
        """The topics that are limited."""
        settings = await self._store.topic_settings(bucket)
        return {
            topic: Limit.read(each["limit"]) for topic, each in settings.items() if "limit" in each
        }

    async def split_limits(self, bucket: int, topic: str, written: str, buckets: int) -> Change:
        """Let a topic be set in a bucket, one of so many, as these settings (JSON) say; "" = as its own do."""
        args = [self._store.sender, topic, written, bucket, buckets]
        return change(await self._store.run("split_limits", bucket, args))
