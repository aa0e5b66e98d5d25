"""The scheduler: what the delayed jobs are kept in, as a choice among the Lua files that make up a script."""

from dataclasses import dataclass
from importlib import resources
from typing import Final

from delayqueue.job import MAX_ANSWER_BYTES

# What only some verbs build upon: every function of a script is made anew at each call.
_RANGES: Final = ("_{index}_ranges",)
_READS: Final = ("_reads",)
_LIMITS: Final = ("_limits",)
_TAG: Final = ("_tag",)
_SHARES: Final = ("_limits", "_shares")
_MORE_PARTS: Final = {
    "apportion": _SHARES,
    "cancel": _TAG,
    "forecast": _RANGES,
    "inspect": ("_{index}_checks", "_checks"),
    "kick": (*_RANGES, "_kick"),
    "kick_tag": (*_TAG, "_kick"),
    "limit": _SHARES,
    "get": _READS,
    "list": _READS,
    "pop": _LIMITS + _READS,
    "purge": _RANGES,
    "putback": _LIMITS,
    "reschedule": ("_reschedule",),
    "reschedule_tag": (*_TAG, "_reschedule"),
    "range": _RANGES + _READS,
    "take": _READS,
    "tick": _LIMITS,
    "weigh": _READS,
}


@dataclass(frozen=True, slots=True)
class Scheduler:
    """`zset`, or `wheel` with so many slots an hour."""

    name: str = "zset"
    wheel_slots: int = 0

    def script(self, verb: str, generation: int = 0) -> str:
        """The source of a verb's script, behind all that it builds upon, for a layout of this generation."""
        folder = resources.files("delayqueue.store.scripts")
        parts = ("_prelude", "_{index}", "_life", *_MORE_PARTS.get(verb, ()), verb)
        names = [f"{part.format(index=self.name)}.lua" for part in parts]
        sources = [folder.joinpath(name).read_text("utf-8") for name in names]
        head = [f"local WHEEL_SLOTS, GENERATION = {self.wheel_slots}, {generation}"]
        if "_reads" in parts:
            head.append(f"local READ_LIMIT_BYTES = {MAX_ANSWER_BYTES}")
        return "\n".join([*head, *sources])


ZSET = Scheduler()
