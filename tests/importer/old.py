"""An old server: ouqiang/delay-queue's steps on Redis, one command each, as its source has them.

Other programs can act between two steps; a crash is a step that is not taken.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from redis.asyncio import Redis

BUCKETS: Final = 3


def packed_text(text: str) -> bytes:
    """A string as the originals' msgpack library writes it: never with the 8 bit length, which came later."""
    raw = text.encode()
    if len(raw) < 32:
        return bytes([0xA0 | len(raw)]) + raw
    if len(raw) < 2**16:
        return b"\xda" + len(raw).to_bytes(2, "big") + raw
    return b"\xdb" + len(raw).to_bytes(4, "big") + raw


def packed_number(number: int) -> bytes:
    """A positive integer as the originals' msgpack library writes it."""
    if number < 128:
        return bytes([number])
    for head, length in ((0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8)):
        if number < 256**length:
            return bytes([head]) + number.to_bytes(length, "big")
    raise ValueError(number)


def packed(topic: str, job_id: str, due_s: int, ttr_s: int, body: str) -> bytes:
    """A job as the originals store it."""
    values = (
        packed_text(topic),
        packed_text(job_id),
        packed_number(due_s),
        packed_number(ttr_s),
        packed_text(body),
    )
    return b"\x85" + b"".join(
        packed_text(str(place)) + value for place, value in enumerate(values, 1)
    )


@dataclass
class OldServer:
    """One of the forks: `key_prefix` is "" or "dq_key_". `now_s` is its clock."""

    redis: Redis
    now_s: Callable[[], int]
    key_prefix: str = ""
    bucket_name: str = "dq_bucket_%d"
    queue_name: str = "dq_queue_%s"
    popped: list[str] = field(default_factory=list)
    _turn: int = 0

    def bucket(self, number: int) -> str:
        return self.bucket_name.replace("%d", str(number))

    def queue(self, topic: str) -> str:
        return self.queue_name.replace("%s", topic)

    def key(self, job_id: str) -> str:
        return self.key_prefix + job_id

    async def store(
        self, topic: str, job_id: str, due_s: int, ttr_s: int = 60, body: str = "body"
    ) -> None:
        """The first step of a push."""
        await self.redis.set(self.key(job_id), packed(topic, job_id, due_s, ttr_s, body))

    async def schedule(self, job_id: str, time_s: int) -> None:
        """The second step; and the last one of a pop."""
        self._turn += 1
        await self.redis.zadd(self.bucket(1 + self._turn % BUCKETS), {job_id: time_s})

    async def push(self, topic: str, job_id: str, delay_s: int, **job: Any) -> None:
        due_s = self.now_s() + delay_s
        await self.store(topic, job_id, due_s, **job)
        await self.schedule(job_id, due_s)

    async def make_ready(self, topic: str, job_id: str, **job: Any) -> None:
        """A job that the timer has moved."""
        await self.store(topic, job_id, self.now_s() - 1, **job)
        await self.redis.rpush(self.queue(topic), job_id)

    async def hand_out(self, topic: str, job_id: str, ttr_s: int = 60) -> None:
        """A job that a consumer has popped just now."""
        await self.store(topic, job_id, self.now_s() - 1, ttr_s)
        await self.schedule(job_id, self.now_s() + ttr_s)

    async def pop(self, topic: str, ttr_s: int = 60) -> str | None:
        raw: Any = await self.redis.lpop(self.queue(topic))
        if raw is None:
            return None
        job_id: str = raw.decode()
        if await self.redis.get(self.key(job_id)) is None:
            return None
        await self.schedule(job_id, self.now_s() + ttr_s)
        self.popped.append(job_id)
        return job_id

    async def finish(self, job_id: str) -> None:
        await self.redis.delete(self.key(job_id))

    async def tick(self, number: int, topic_of: Callable[[str], str]) -> bool:
        """Move the first entry of a bucket, if it is due; returns whether there may be another."""
        bucket = self.bucket(number)
        first: Any = await self.redis.zrange(bucket, 0, 0, withscores=True)
        if not first or first[0][1] > self.now_s():
            return False
        job_id = first[0][0].decode()
        if await self.redis.get(self.key(job_id)) is not None:
            await self.redis.rpush(self.queue(topic_of(job_id)), job_id)
        await self.redis.zrem(bucket, job_id)
        return True

    async def tick_all(self, topic_of: Callable[[str], str]) -> None:
        """Move all entries that are due."""
        for number in range(1, BUCKETS + 1):
            while await self.tick(number, topic_of):
                pass

    async def run(
        self, topic_of: Callable[[str], str], stopped: asyncio.Event, *, beat_s: float
    ) -> None:
        """Its timers, until it is stopped."""
        while not stopped.is_set():
            await self.tick_all(topic_of)
            await asyncio.sleep(beat_s)
