"""Which buckets' calls fail now, and why."""

import logging
from time import monotonic

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.errors import Text
from delayqueue.metrics import SCRIPT_ERRORS, Metrics
from delayqueue.store.servers.ailments import UNKNOWN, ailment
from delayqueue.store.servers.replication import TooFewReplicasError

log = logging.getLogger(__name__)

AWAY = (
    "the store of bucket %d does not answer: its jobs wait in it, requests for them get code 6 (HTTP 503), "
    "and all goes on by itself when it answers again"
)


class Outages:
    """By bucket, from 0: why its last call failed, and since when its server has been away."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.ailments = dict[int, Text]()  # of buckets whose last call failed
        # of these, where a call that writes failed, and none has succeeded since
        self._cannot_write = set[int]()
        self._away_since: dict[int, float] = {}  # monotonic: its server does not answer
        self._back_at: dict[int, float] = {}  # monotonic: it has answered again

    def failed(
        self, bucket: int, verb: str, error: RedisError, began_s: float, *, writes: bool
    ) -> None:
        """A call that began then, in monotonic seconds, and that may write, has failed."""
        # the first failure was logged; those that follow come fast, and there are many
        level = logging.DEBUG if isinstance(error, TooFewReplicasError) else logging.WARNING
        log.log(level, "%s failed in the store: %s", verb, error)
        self._metrics.count(SCRIPT_ERRORS, verb)
        self.ailments[bucket] = ailment(error) or UNKNOWN
        if writes:
            self._cannot_write.add(bucket)
        if not isinstance(error, (RedisConnectionError, RedisTimeoutError)):
            return
        # it says nothing if another call has been answered since then
        if bucket not in self._away_since and began_s > self._back_at.get(bucket, 0.0):
            self._away_since[bucket] = began_s
            # no warning: of two outages in a row, the log would leave one out
            log.error(AWAY, bucket + 1)

    def answered(self, bucket: int, *, writes: bool) -> None:
        """A call, which may write, has succeeded. Need not be told while there are no ailments."""
        # a read-only replica answers what only looks
        if writes or bucket not in self._cannot_write:
            self.ailments.pop(bucket, None)
            self._cannot_write.discard(bucket)
        if bucket in self._away_since:
            self._back_at[bucket] = monotonic()
            away_s = self._back_at[bucket] - self._away_since.pop(bucket)
            log.info("the store of bucket %d answers again, after %.1f s", bucket + 1, away_s)

    def away(self) -> set[int]:
        """The buckets whose server did not answer the last call."""
        return set(self._away_since)
