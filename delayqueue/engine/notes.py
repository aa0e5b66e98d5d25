"""What people say about dead letters of one reason, for all who look at them."""

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from delayqueue.store.registry import Entry, Registry

MOST: Final = 100  # the oldest gives way to one more
KEPT_MS: Final = 30 * 86_400_000


class Note(NamedTuple):
    """What was said, by whom, and when."""

    text: str
    by: str
    at_ms: int


NOTE: Final = TypeAdapter(Note)


class Notes:
    """The notes by reason. All methods raise Unavailable if the store does not answer."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def all(self) -> Mapping[str, Note]:
        """Those that are not too old, the oldest first."""
        notes, now_ms = await self._read()
        return {reason: note for reason, note in notes.items() if not _is_old(note, now_ms)}

    async def put(self, reason: str, text: str, by: str) -> None:
        """Say something about a reason, instead of what was said before."""
        notes, now_ms = await self._read()
        others = [each for each in notes if each != reason]
        spare = {each for each in others if _is_old(notes[each], now_ms)}
        spare.update(others[: max(0, len(others) + 1 - MOST)])
        for each in spare:
            await self.remove(each)
        written = NOTE.dump_json(Note(text, by, now_ms)).decode()
        await self._registry.register("notes", Entry(reason, written), "replace")

    async def remove(self, reason: str) -> None:
        """Drop the note of a reason, if it has one."""
        await self._registry.unregister("notes", reason)

    async def _read(self) -> tuple[dict[str, Note], int]:
        """All notes, the oldest first, and the store's time. An unreadable one counts as the oldest."""
        _, entries, now_ms = await self._registry.registered("notes")
        notes = {entry.name: _note(entry.definition) for entry in entries or ()}
        return dict(sorted(notes.items(), key=lambda each: each[1].at_ms)), now_ms


def _note(written: str) -> Note:
    try:
        return NOTE.validate_python(json.loads(written))
    except (ValueError, ValidationError):
        return Note("", "", 0)


def _is_old(note: Note, now_ms: int) -> bool:
    return now_ms - note.at_ms > KEPT_MS
