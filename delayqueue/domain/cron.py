"""The times of a cron expression in a time zone. Pure.

CronSim tells what a wall clock shows when the expression matches. When it shows that, in a zone whose clocks change, is
worked out here: CronSim itself leaves out or repeats times if there are seconds, or the change is half an hour.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

# The most that a zone puts its clocks back (Antarctica/Troll).
REPETITION_S: Final = 2 * 3600
MAX_TZ_CHARS: Final = 64  # longer than any zone's name
SECOND: Final = timedelta(seconds=1)
# Debian's crontab(5), without @reboot: a schedule has no start of a machine
NAMED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Cron:
    """An expression of five fields, six with seconds first, or one of NAMED, in a time zone. Times are unix seconds.

    As in Debian's cron, with `*` as minute or hour it goes by what the clock shows, in a repeated hour twice. Otherwise
    each of its times comes once a day: the first time if the clock shows it twice, and if never, when the clock has
    been put forward.
    """

    def __init__(self, expression: str, tz: str) -> None:
        """Raises ValueError if this host does not know the zone, or what the expression says."""
        self._expression = NAMED.get(expression, expression)
        self._zone = zone(tz)
        self._matches(_clock(0), 1)
        minute, hour = self._expression.split()[-5:-3]
        self._goes_by_the_clock = minute.startswith("*") or hour.startswith("*")

    def after(self, time_s: int) -> int | None:
        """The first time after the given one; None = there is none in 50 years."""
        if self._goes_by_the_clock:
            return self._shown(time_s, 1)
        return next((at_s for at_s in self._once(time_s, 1) if at_s > time_s), None)

    def until(self, time_s: int) -> int | None:
        """The last time at or before the given one; None = there was none in 50 years."""
        if self._goes_by_the_clock:
            return self._shown(time_s, -1)
        return next((at_s for at_s in self._once(time_s, -1) if at_s <= time_s), None)

    def _matches(self, clock: datetime, step: int) -> Iterator[datetime]:
        """The matching times of a wall clock after `clock`; with a step of -1 those before it, the latest first."""
        from cronsim import CronSim, CronSimError  # noqa: PLC0415  # the client's command line works without it

        try:
            return CronSim(self._expression, clock, reverse=step < 0)
        except CronSimError as error:
            raise ValueError(str(error)) from None

    def _once(self, time_s: int, step: int) -> Iterator[int]:
        """Matching times, each once a day, from near `time_s` on."""
        clock = datetime.fromtimestamp(time_s, self._zone)
        if step < 0:  # also what the clock will show before it is put back: it came before
            clock += timedelta(seconds=REPETITION_S * clock.fold + 1)
        return map(self._first, self._matches(clock.replace(tzinfo=None, fold=0), step))

    def _first(self, clock: datetime) -> int:
        """When the clock first shows `clock`; if the clock skips it, the end of that gap."""
        first_s, second_s = (
            round(clock.replace(tzinfo=self._zone, fold=fold).timestamp()) for fold in (0, 1)
        )
        # in a gap, each is taken by the offset of the other side
        return first_s if first_s <= second_s else self._change(second_s, first_s)

    def _shown(self, time_s: int, step: int) -> int | None:
        """The first time after `time_s` at which the clock shows a match; with a step of -1 the last one until then."""
        offset_s = self._offset_s(time_s)
        clock = _clock(time_s + offset_s) + (SECOND if step < 0 else timedelta())
        while True:
            match = next(self._matches(clock, step), None)
            found_s = None if match is None else _shown_s(match) - offset_s
            # a clock that is put back soon shows times again that `match` is behind
            looks = [time_s + step * REPETITION_S]
            if found_s is not None:
                near = abs(found_s - time_s) <= REPETITION_S
                looks = [found_s] if near else [*looks, found_s]
            changed_s = next((at_s for at_s in looks if self._offset_s(at_s) != offset_s), None)
            if changed_s is None:
                return found_s
            time_s = self._change(time_s, changed_s)
            offset_s = self._offset_s(time_s)
            clock = _clock(time_s + offset_s) - step * SECOND

    def _change(self, near_s: int, far_s: int) -> int:
        """The time next to a change of the clock between the two times, on its far side."""
        offset_s = self._offset_s(near_s)
        while abs(far_s - near_s) > 1:
            middle_s = (near_s + far_s) // 2
            if self._offset_s(middle_s) == offset_s:
                near_s = middle_s
            else:
                far_s = middle_s
        return far_s

    def _offset_s(self, time_s: int) -> int:
        return _shown_s(datetime.fromtimestamp(time_s, self._zone)) - time_s


def _shown_s(clock: datetime) -> int:
    """The unix time at which a clock in UTC shows this time."""
    return round(clock.replace(tzinfo=UTC).timestamp())


def _clock(shown_s: int) -> datetime:
    return datetime.fromtimestamp(shown_s, UTC).replace(tzinfo=None)


def zone(name: str) -> ZoneInfo:
    """The time zone of that name. Raises ValueError if this host does not know it."""
    try:
        return ZoneInfo(name[:MAX_TZ_CHARS])
    except (KeyError, ValueError, OSError):  # not found, a path that leads elsewhere, a folder
        raise ValueError(f"this host does not know the time zone {name}") from None
