"""Repairs the store in the timer's spare time: `delay-queue fsck --repair` in small steps, endlessly."""

import asyncio
import logging
from collections import Counter
from typing import Final

from delayqueue.domain import damage
from delayqueue.engine.fsck import Pass
from delayqueue.errors import Unavailable
from delayqueue.store.bucket import Bucket
from delayqueue.store.types import Inspected

log = logging.getLogger(__name__)

STEP: Final = 250  # entries that a step checks: about 1.5 ms of the store's time
MOST_STEPS: Final = 20  # one after the other
PAUSE_S: Final = 60.0  # after a failed call: repairs are not urgent


class Scrubber:
    """Checks one bucket. Several scrubbers, in any number of servers, do not disturb each other."""

    def __init__(self, bucket: Bucket) -> None:
        """The store's listeners are notified of ready jobs that a repair has found again."""
        self._bucket = bucket
        self._pass = self._new_pass()
        self._resume_at = 0.0  # loop time

    async def step(self) -> None:
        """Make one bounded call of the store; after a failure, none for a while.

        More of them if jobs are lost: until their entries are gone, they are counted as if they were there.
        """
        now = asyncio.get_running_loop().time()
        if now < self._resume_at:
            return
        if self._pass.is_over:
            self._pass = self._new_pass()
        lost = Counter[str]()
        try:
            for _ in range(MOST_STEPS):
                seen = await self._pass.step()
                self._report(seen)
                for topic, number in seen.lost:
                    lost[topic] += number
                if not seen.lost or self._pass.is_over:
                    break
        except Unavailable:
            self._resume_at = now + PAUSE_S
        for topic, number in lost.items():
            log.error(
                "lost %d jobs of topic %r: the store has dropped their records", number, topic
            )

    def _report(self, seen: Inspected) -> None:
        mended = Counter(finding.kind for finding in seen.findings if finding.repaired)
        del mended[damage.LOST]
        if not mended:
            return
        self._bucket.notify(seen.change._replace(next_due_ms=0, is_news=True))
        for kind, count in mended.items():
            first = next(finding for finding in seen.findings if finding.kind == kind)
            log.warning(
                "repaired %d of kind %s, the first: %s",
                count,
                kind,
                damage.sentence(first.kind, first.name, first.id),
            )

    def _new_pass(self) -> Pass:
        return Pass(self._bucket, STEP, repair=True)
