"""What subscribers and schedules have in common: all servers share them; clients or a config file make them."""

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from delayqueue.config.startup import StartupError
from delayqueue.domain.schedule import Schedule
from delayqueue.domain.subscriber import Subscriber
from delayqueue.errors import Code, JobExists, NoSuchJob, WrongState
from delayqueue.store.registry import Entry, Kind, Registry
from delayqueue.tasks import by_turns

log = logging.getLogger(__name__)

Kept = TypeVar("Kept", Subscriber, Schedule)

OTHER_FILE = "all servers of a store should have the same sections"


class Registrations(Generic[Kept]):
    """The verbs on one of the two kinds. All raise Unavailable if the store does not answer."""

    def __init__(self, registry: Registry, kind: Kind, read: Callable[[str], Kept]) -> None:
        """`read` parses a definition."""
        self._registry = registry
        self._kind: Kind = kind
        self._read_one: Callable[[str], Kept] = read

    async def register(self, one: Kept, if_exists: str) -> None:
        """Register a subscriber or a schedule; the same one again is no error.

        Raises JobExists if the name is taken by another one and `if_exists` is `fail`, or a config file declares it.
        """
        [entry] = await self._entries([one])
        if await self._registry.register(self._kind, entry, if_exists) != Code.OK:
            raise self._exists(one.name)

    async def change(self, name: str, fields: Mapping[str, Any]) -> None:
        """Change these fields of a subscriber or schedule; what others change meanwhile stays changed.

        Raises NoSuchJob if it is unknown, JobExists if a config file declares it.
        """
        code = Code.WRONG_STATE
        while code != Code.OK:
            found = [each async for each in read_all(self._read_one, await self._stored(name))]
            if not found:
                raise self._unknown(name)
            entry, one = found[0]
            if one.declared:
                raise self._exists(name)
            [wanted] = await self._entries([self._changed(one, fields)])
            code = Code(await self._registry.change(self._kind, wanted, entry))

    async def remove(self, name: str) -> None:
        """Remove one by its name. Raises NoSuchJob if that is unknown, WrongState if a config file declares it."""
        self._raise_for(await self._registry.unregister(self._kind, name), name)

    async def declare(self, wanted: Iterable[Kept]) -> None:
        """Replace everything that the config file declared before, and log what that changes.

        Raises StartupError if a name was taken at run time; then nothing has changed.
        """
        entries = await self._entries(wanted)
        stored = {entry.name: entry.definition for entry in await self._stored()}
        codes = await self._registry.declare(self._kind, entries)
        for entry, code in zip(entries, codes, strict=True):
            if code != Code.OK:
                raise _taken(self._kind, entry)
        self._log_changes({entry.name: entry.definition for entry in entries}, stored)

    def _changed(self, one: Kept, fields: Mapping[str, Any]) -> Kept:
        """The subscriber or schedule with these fields changed."""
        return replace(one, **fields)

    async def _entries(self, wanted: Iterable[Kept]) -> list[Entry]:
        """The store's entries for these."""
        return [entry_of(one) for one in wanted]

    async def _stored(self, name: str | None = None) -> list[Entry]:
        """All entries, or the one with that name."""
        return (await self._registry.registered(self._kind, name=name)).entries or []

    def _raise_for(self, code: int, name: str) -> None:
        """Raise the error that a script's code stands for."""
        if code == Code.NO_SUCH_JOB:
            raise self._unknown(name)
        if code == Code.WRONG_STATE:
            raise WrongState.of(
                f"{name} 在配置文件中，请从文件中删除",
                f"{name}: comes from a config file; remove it there and reload the servers",
            )

    def _exists(self, name: str) -> JobExists:
        return JobExists.of(
            f"{name} 已存在：使用其他名称，或 if_exists = replace（配置文件里的须在文件中修改）",
            f"{name}: another {self._kind[:-1]} has this name; choose another one, or replace it with "
            "if_exists (one from a config file can only be changed there)",
        )

    def _unknown(self, name: str) -> NoSuchJob:
        """The error for a name that is not registered."""
        return NoSuchJob.of(f"{name} 不存在", f"{name}: no such {self._kind[:-1]}")

    def _log_changes(self, wanted: Mapping[str, str], stored: Mapping[str, str]) -> None:
        """Log the declarations that are gone: those of an earlier version of this file, or of another server's file."""
        for name, definition in stored.items():
            if not _is_declared(definition) or wanted.get(name) == definition:
                continue
            why = (
                "replaced: it was declared differently"
                if name in wanted
                else "removed: this file does not declare it"
            )
            log.warning("[%s %s] is %s; %s", self._kind[:-1], name, why, OTHER_FILE)


def entry_of(declared: Subscriber | Schedule) -> Entry:
    """The store's entry for a subscriber, or for a schedule without its next time."""
    return Entry(declared.name, declared.definition)


def refuse_taken(kind: Kind, entries: Iterable[Entry], stored: Mapping[str, str]) -> None:
    """Raises StartupError if an entry has the name of a `stored` one that was made at run time."""
    for entry in entries:
        if entry.name in stored and not _is_declared(stored[entry.name]):
            raise _taken(kind, entry)


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


async def read_all(
    read: Callable[[str], Kept], entries: Iterable[Entry]
) -> AsyncIterator[tuple[Entry, Kept]]:
    """The store's entries, yielding to other tasks; unreadable ones are left out and logged."""
    async for entry in by_turns(entries):
        try:
            found = read(entry.definition)
        except ValueError as error:
            # a warning, not an error: the log leaves most repetitions of a warning out
            log.warning("%r in the store cannot be read: %s", entry.name, error)
        else:
            yield entry, found
