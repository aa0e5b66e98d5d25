"""Which of the two forks an installation is: they differ in the prefix of a job's key."""

from typing import Any

from redis.asyncio import Redis

from delayqueue.config.startup import StartupError
from delayqueue.store.original.names import PREFIXES, Names, literal

SAMPLE = 100  # ids of each bucket and list


async def key_prefix(redis: Redis, names: Names, given: str | None) -> str:
    """The prefix of the jobs' keys: `given`, or detected.

    Raises StartupError if there are jobs with both, or with another one than `given`: with a wrong one, all jobs would
    look as if they had ended.
    """
    hits = await _hits(redis, await _sample(redis, names), {*PREFIXES, given or ""})
    found = [prefix for prefix, count in hits.items() if count]
    if given is not None:
        if found and given not in found:
            raise StartupError(
                f'--key-prefix "{given}": no job has it, they have "{found[0]}"; correct it'
            )
        return given
    if len(found) > 1:
        raise StartupError(
            "there are jobs of both ouqiang/delay-queue and php-cpm/delay-queue: "
            'choose one with --key-prefix "" or --key-prefix dq_key_, and import the others after it'
        )
    return found[0] if found else await _of_a_record(redis)


async def _sample(redis: Redis, names: Names) -> list[bytes]:
    """Some ids from buckets and lists."""
    ids: list[Any] = []
    for bucket in names.buckets():
        if await redis.type(bucket) == b"zset":
            ids += await redis.zrange(bucket, 0, SAMPLE - 1)
    async for queue in redis.scan_iter(match=names.queue_pattern(), count=1000):
        if await redis.type(queue) == b"list":
            ids += await redis.lrange(queue, 0, SAMPLE - 1)
    return ids


async def _hits(redis: Redis, ids: list[bytes], prefixes: set[str]) -> dict[str, int]:
    """How many of the ids have a record with each prefix."""
    hits = {}
    for prefix in sorted(prefixes):
        keys = [prefix.encode() + job_id for job_id in ids]
        hits[prefix] = int(await redis.exists(*keys)) if keys else 0
    return hits


async def _of_a_record(redis: Redis) -> str:
    """The prefix of an installation in which every job has lost its place."""
    prefix = "dq_key_"
    async for _ in redis.scan_iter(match=f"{literal(prefix)}*", count=1000):
        return prefix
    return ""
