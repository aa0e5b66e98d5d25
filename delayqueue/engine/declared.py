"""What a config file declares, compared with what is in the store: conflicts and changes."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence

from delayqueue.config.startup import StartupError
from delayqueue.domain.schedule import Schedule
from delayqueue.domain.subscriber import Subscriber
from delayqueue.errors import Code
from delayqueue.store.bucket.registry import Kind, Registry
from delayqueue.store.entries import Entry

log = logging.getLogger(__name__)

OTHER_FILE = "all servers of a store should have the same sections"


def entry_of(declared: Subscriber | Schedule) -> Entry:
    """The store's entry for a subscriber, or for a schedule without its next time."""
    return Entry(declared.name, declared.definition)


async def check(registry: Registry, kind: Kind, entries: Iterable[Entry]) -> None:
    """Raises StartupError if `declare` would."""
    refuse_taken(kind, entries, await _stored(registry, kind))


async def declare(registry: Registry, kind: Kind, entries: Sequence[Entry]) -> None:
    """Replace everything that the config file declared before, and log what that changes.

    Raises StartupError if a name was taken at run time; then nothing has changed.
    """
    stored = await _stored(registry, kind)
    codes = await registry.declare(kind, entries)
    for entry, code in zip(entries, codes, strict=True):
        if code != Code.OK:
            raise _taken(kind, entry)
    _log_changes(kind, entries, stored)


def refuse_taken(kind: Kind, entries: Iterable[Entry], stored: Mapping[str, str]) -> None:
    """Raises StartupError if an entry has the name of a `stored` one that was made at run time."""
    for entry in entries:
        if entry.name in stored and not _is_declared(stored[entry.name]):
            raise _taken(kind, entry)


def _log_changes(kind: Kind, entries: Iterable[Entry], stored: Mapping[str, str]) -> None:
    """Log the declarations that are gone: those of an earlier version of this file, or of another server's file."""
    wanted = {entry.name: entry.definition for entry in entries}
    for name, definition in stored.items():
        if not _is_declared(definition):
            continue
        if name not in wanted:
            log.warning(
                "[%s %s] is removed: this file does not declare it; %s", kind[:-1], name, OTHER_FILE
            )
        elif wanted[name] != definition:
            log.warning(
                "[%s %s] is replaced: it was declared differently; %s", kind[:-1], name, OTHER_FILE
            )


async def _stored(registry: Registry, kind: Kind) -> dict[str, str]:
    entries = (await registry.registered(kind)).entries or []
    return {entry.name: entry.definition for entry in entries}


def _taken(kind: Kind, entry: Entry) -> StartupError:
    return StartupError(
        f"[{kind[:-1]} {entry.name}]: the store has another {kind[:-1]} of this name, made at run time: "
        "remove that one, or choose another name"
    )


def _is_declared(definition: str) -> bool:
    try:
        return bool(json.loads(definition).get("declared"))
    except (ValueError, AttributeError):  # unreadable
        return False
