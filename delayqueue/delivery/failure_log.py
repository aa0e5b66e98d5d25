"""Logs failed calls: of those of one subscriber to one host, a line a minute."""

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final

from delayqueue.delivery.outcome import WebhookOutcome
from delayqueue.delivery.urls import host_and_port_of
from delayqueue.domain.subscriber import Subscriber
from delayqueue.store.types import Recording

log = logging.getLogger(__name__)

EVERY_S: Final = 60.0
MOST: Final = 1000  # lines that are remembered; whatever is forgotten has one sooner
LOG_CHARS: Final = 200  # of a message


@dataclass(slots=True)
class _LastLine:
    """When the last line was logged, in the clock's seconds, and how many calls have failed since."""

    at_s: float
    unlogged: int = 0


class FailureLog:
    """The first failure is logged at once; the next line, a minute later at the earliest, says how many came between.

    All jobs with a call have the same subscriber, so each host that fails them has its line.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        # by subscriber and host; the one that was logged last is at the end
        self._lines = OrderedDict[tuple[str, str], _LastLine]()

    def failed(
        self, subscriber: Subscriber, topic: str, recording: Recording, outcome: WebhookOutcome
    ) -> None:
        """Log a failed call; without the answer's text, which may hold what no log should."""
        where, between = host_and_port_of(subscriber.url), ""
        line = self._lines.get((subscriber.name, where))
        if line is not None and self._clock() < line.at_s + EVERY_S:
            line.unlogged += 1
            return
        if line is not None and line.unlogged:
            between = f"; {line.unlogged} more failed there since the last such line"
        self._begin_line((subscriber.name, where))
        reason = (
            f"HTTP status {outcome.status}" if outcome.status else recording.message[:LOG_CHARS]
        )
        log.warning(
            "subscriber %r failed with job %r of topic %r, attempt %d%s: %s%s",
            subscriber.name,
            recording.id,
            topic,
            recording.attempts,
            where and f", at {where}",
            reason,
            between,
        )

    def _begin_line(self, key: tuple[str, str]) -> None:
        self._lines[key] = _LastLine(self._clock())
        self._lines.move_to_end(key)
        if len(self._lines) > MOST:
            self._lines.popitem(last=False)
