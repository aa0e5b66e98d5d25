"""Whether the store's servers answer right now."""

import asyncio
from functools import partial
from typing import Final

from redis.asyncio import Redis

from delayqueue.errors import Unavailable
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.tasks import SingleFlight

LOOK_S: Final = 1.0  # a server that takes longer to answer a PING is of little use


class Looking:
    """Asks them. Whoever asks meanwhile gets the same answer, so a flood of questions costs the store nothing."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store
        self._pings = SingleFlight[object](LOOK_S)

    async def away(self) -> set[int]:
        """The buckets whose server does not answer: not to the last call, or not to a PING."""
        store = self._store
        numbers = {keys.tag: n for n, keys in enumerate(store.buckets.keys[: store.buckets.count])}
        groups = [{numbers[tag] for tag in tags} for tags in store.shards.groups(numbers).values()]
        answered = await asyncio.gather(*(self._answers(min(buckets)) for buckets in groups))
        reached = (buckets for buckets, answers in zip(groups, answered, strict=True) if answers)
        return (set(numbers.values()) - set().union(*reached)) | store.caller.away()

    async def _answers(self, bucket: int) -> bool:
        """Whether this bucket's server does; a PING that hangs is left to itself."""
        ping = partial(self._store.caller.ask, "ping", bucket, _ping)
        try:
            async with asyncio.timeout(LOOK_S):
                await self._pings.do(bucket, ping)
        except (Unavailable, TimeoutError):
            return False
        return True


async def _ping(redis: Redis) -> object:
    return await redis.ping()
