"""The record of all that clients sent and received while things broke: a file of JSON lines.

An operation is one line when it begins (`invoke`) and one when it ends: `ok`, or `info` (nobody knows: no answer, or
a 503). A line without a number of its own notes a fault or a clock.
"""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

Json = dict[str, Any]

INVOKE: Final = "invoke"
OK: Final = "ok"
INFO: Final = "info"
NOTE: Final = 0  # the number in lines that belong to no operation
FREEZE: Final = "freeze Redis"  # faults that the checker knows
THAW: Final = "thaw Redis"
CLOCK_SLIP_S: Final = 0.0005  # of the machine's clock beside the monotonic one, that is noted
CLOCK_READ_S: Final = 0.0002  # both must be read within this time
KILL_EVERYSEC: Final = "kill Redis, appendfsync everysec"


@dataclass(frozen=True)
class Event:
    """One line. `jobs`: the pushed, delivered or named jobs, with codes if it has ended."""

    number: int  # the operation's, the same when it begins and ends
    type: str
    verb: str
    time_s: float  # of the monotonic clock
    jobs: Sequence[Json] = ()
    note: Json = field(default_factory=dict)


class History:
    """Writes the record. `with History(path) as history: ...`"""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("w", encoding="utf-8")
        self._number = NOTE
        self._ahead_s = self._offset_s = time.time() - time.monotonic()
        self.set_clock(self._offset_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def flush(self) -> None:
        """Make sure that the file has everything."""
        self._file.flush()

    def invoke(self, verb: str, jobs: Iterable[Json]) -> int:
        """An operation begins. Returns its number."""
        self._number += 1
        self._follow_clock()
        self._write(self._number, INVOKE, verb, jobs)
        return self._number

    def end(self, number: int, outcome: str, verb: str, jobs: Iterable[Json] = ()) -> None:
        """An operation ends with OK or INFO."""
        self._follow_clock()
        self._write(number, outcome, verb, jobs)

    def fault(self, what: str) -> None:
        """Something was broken or healed."""
        self._write(NOTE, INFO, "fault", (), what=what)

    def set_clock(self, offset_s: float) -> None:
        """From now on the store's clock shows the monotonic clock's time plus `offset_s`."""
        self._offset_s = offset_s
        self._write(NOTE, INFO, "clock", (), offset_s=offset_s)

    def _follow_clock(self) -> None:
        """The machine's clock, and with it the store's, can be set by a few ms at any time."""
        before_s, shown_s, after_s = time.monotonic(), time.time(), time.monotonic()
        slip_s = shown_s - after_s - self._ahead_s
        if after_s - before_s < CLOCK_READ_S and abs(slip_s) > CLOCK_SLIP_S:
            self._ahead_s += slip_s
            self.set_clock(self._offset_s + slip_s)

    def _write(
        self, number: int, kind: str, verb: str, jobs: Iterable[Json], **note: object
    ) -> None:
        event = Event(number, kind, verb, time.monotonic(), list(jobs), note)
        self._file.write(json.dumps(asdict(event)) + "\n")


def read_history(path: Path) -> Iterator[Event]:
    """The events of a file, in their order."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield Event(**json.loads(line))
