"""Where a job of the original is, judged by what its Redis holds. Pure.

The original has no states: a job is a record, and its id is in a bucket (sorted set, by a time) or in a ready list. Its
timer moves an id whose time has come from its bucket to the list of the job's topic, first adding, then removing. A pop
takes the id off the list, reads the record and adds the id to a bucket again, with the time at which the TTR expires. A
finish only drops the record; the id stays until something comes across it. So an id may be in several places, or, after
a crash between two of these steps, in none.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from delayqueue.store.original.packed import Packed

# The clocks of the old servers and of Redis, whose time we use, may differ by this much.
CLOCKS_S: Final = 5


class Place(StrEnum):
    """Where a job of the original is."""

    DELAYED = "delayed"
    READY = "ready"
    RESERVED = "handed out"
    DUE = "due"  # in a bucket, for the timer to move at any moment
    LOST = "lost"  # nowhere: a step of the old server did not happen, or is about to


class Standing(NamedTuple):
    """A job's place, and when it is due for us. `free`: an old server that runs does not touch it now."""

    place: Place
    due_s: int
    free: bool


def standing(job: Packed, times_s: Iterable[float], now_s: int, *, listed: bool) -> Standing:
    """`times_s` are the id's times in the buckets, `listed` whether it is in its ready list.

    A job that was handed out is due when its TTR expires. A lost one counts as handed out just now.
    """
    times = list(times_s)
    if job.due_s > now_s:  # whatever an earlier push of this id left behind
        return Standing(Place.DELAYED, job.due_s, free=job.due_s > now_s + CLOCKS_S)
    deadlines = [time for time in times if now_s < time <= now_s + job.ttr_s + CLOCKS_S]
    if deadlines:
        return Standing(Place.RESERVED, int(max(deadlines)), free=False)
    if listed:
        return Standing(Place.READY, job.due_s, free=True)
    if any(time <= now_s for time in times):
        return Standing(Place.DUE, job.due_s, free=False)
    return Standing(Place.LOST, now_s + job.ttr_s, free=False)
