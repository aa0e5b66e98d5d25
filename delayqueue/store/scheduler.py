"""The scheduler: what the delayed jobs are kept in, as a choice among the Lua files that make up a script."""

from dataclasses import dataclass
from importlib import resources
from typing import Final

_MORE_PARTS: Final = {"inspect": ("_checks",)}  # that one verb builds upon


@dataclass(frozen=True, slots=True)
class Scheduler:
    """`zset`, or `wheel` with so many slots an hour."""

    name: str = "zset"
    wheel_slots: int = 0

    def script(self, verb: str) -> str:
        """The source of a verb's script, behind all that it builds upon."""
        folder = resources.files("delayqueue.store.scripts")
        parts = ("_prelude", f"_{self.name}", "_life", *_MORE_PARTS.get(verb, ()), verb)
        sources = [folder.joinpath(f"{part}.lua").read_text("utf-8") for part in parts]
        return "\n".join([f"local WHEEL_SLOTS = {self.wheel_slots}", *sources])


ZSET = Scheduler()
