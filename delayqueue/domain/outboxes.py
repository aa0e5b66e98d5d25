"""Relays' reports on their outboxes: how many rows have failed, and why. No IO."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final

MOST_OUTBOXES: Final = 20  # that a process remembers, those of which it heard last
MAX_NAME_BYTES: Final = 256
MAX_REASON_CHARS: Final = 200
MAX_ROWS: Final = 10**12
FORGOTTEN_S: Final = 3600.0  # after the last word of its relays


@dataclass(frozen=True, slots=True)
class Outbox:
    """A relay's report on its outbox, made `ago_s` ago.

    `failed` rows cannot be carried out, the newest of them for this `reason`; the oldest row that waits has `oldest_s`,
    0 = none waits.
    """

    name: str
    failed: int = 0
    reason: str = ""
    oldest_s: float = 0
    ago_s: float = 0


class Outboxes:
    """The outboxes on which relays have reported to this process."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._reports: dict[str, tuple[float, Outbox]] = {}  # the one with the latest news last

    def note(self, outbox: Outbox) -> None:
        """Take a relay's report on its outbox."""
        self._reports.pop(outbox.name, None)
        self._reports[outbox.name] = self._now(), outbox
        if len(self._reports) > MOST_OUTBOXES:
            del self._reports[next(iter(self._reports))]

    def report(self) -> Iterator[Outbox]:
        """The reports that are not older than FORGOTTEN_S, with their ages."""
        for reported_s, outbox in self._reports.values():
            if (ago_s := round(self._now() - reported_s, 3)) <= FORGOTTEN_S:
                yield replace(outbox, ago_s=ago_s)
