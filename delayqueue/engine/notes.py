"""People's notes on dead letters of one reason, shown to everybody who looks at them."""

import json
from collections.abc import Mapping
from typing import Final

from delayqueue.answers.topics import Note
from delayqueue.store.registry import Entry, Registry

MOST: Final = 100  # the oldest gives way to one more
KEPT_S: Final = 30 * 86_400.0


class Notes:
    """The notes by reason. All methods raise Unavailable if the store does not answer."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def all(self) -> Mapping[str, Note]:
        """The notes that are not too old, the oldest first."""
        notes, now_s = await self._read()
        return {reason: note for reason, note in notes.items() if not _is_old(note, now_s)}

    async def put(self, reason: str, text: str, by: str) -> None:
        """Set the note of a reason."""
        notes, now_s = await self._read()
        others = [each for each in notes if each != reason]
        spare = {each for each in others if _is_old(notes[each], now_s)}
        spare.update(others[: max(0, len(others) + 1 - MOST)])
        for each in spare:
            await self.remove(each)
        written = json.dumps([text, by, round(1000 * now_s)])
        await self._registry.register("notes", Entry(reason, written), "replace")

    async def remove(self, reason: str) -> None:
        """Drop the note of a reason, if it has one."""
        await self._registry.unregister("notes", reason)

    async def _read(self) -> tuple[dict[str, Note], float]:
        """All notes, the oldest first, and the store's time in seconds. An unreadable one counts as the oldest."""
        _, entries, now_ms = await self._registry.registered("notes")
        notes = {entry.name: _note(entry.definition) for entry in entries or ()}
        return dict(sorted(notes.items(), key=lambda each: each[1].at)), now_ms / 1000


def _note(written: str) -> Note:
    try:
        text, by, at_ms = json.loads(written)
        return Note(str(text), str(by), int(at_ms) / 1000)
    except (ValueError, TypeError, OverflowError):
        return Note("", "", 0)


def _is_old(note: Note, now_s: float) -> bool:
    return now_s - note.at > KEPT_S
