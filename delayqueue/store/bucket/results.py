"""Subscribers' results for the jobs that are reserved for them."""

import json
from collections.abc import Sequence
from typing import Any

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.replies import moved
from delayqueue.store.types import Change, Moved, Postponement, Recording


class Results:
    """One method per script, as in BucketStore. All raise Unavailable if Redis does not answer or refuses."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store

    async def record(
        self, bucket: int, recordings: Sequence[Recording], _scope: Scope = EVERYWHERE
    ) -> list[int]:
        """Record subscribers' results for jobs that are reserved for them. Returns a code for each."""
        args: list[Any] = []
        for one in recordings:
            args += (one.id, one.nonce, one.subscriber, "1" if one.succeeded else "0", one.message)
            args += (one.attempts, one.took_ms, "" if one.delay_ms is None else one.delay_ms)
        return (await self._store.run("record", bucket, args)).results

    async def postpone(
        self, bucket: int, postponements: Sequence[Postponement], _scope: Scope = EVERYWHERE
    ) -> tuple[list[Moved], Change]:
        """Give reserved jobs back until a subscriber may be called again.

        Returns the due time of each, None if it was buried.
        """
        args: list[Any] = []
        for one in postponements:
            args += (one.id, one.nonce, one.message, json.dumps(one.subscribers))
        reply = await self._store.run("postpone", bucket, args)
        return moved(reply), reply.change
