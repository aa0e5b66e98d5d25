"""The subscribers that all servers share: registering them, and knowing them without asking for each job."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from delayqueue.domain.subscriber import Subscriber
from delayqueue.engine import declared
from delayqueue.engine.declared import entry_of
from delayqueue.errors import Code, JobExists, NoSuchJob, Text, WrongState
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.registry import Registry
from delayqueue.store.calls import Calls, calls_of
from delayqueue.store.types import Entry
from delayqueue.tasks import by_turns

log = logging.getLogger(__name__)

T = TypeVar("T")


class Subscribed(NamedTuple):
    """A subscriber, and since when it is paused, None = it is not."""

    subscriber: Subscriber
    paused_ms: int | None


class Subscribers:
    """The verbs on subscribers. All raise Unavailable if the store does not answer."""

    def __init__(self, registry: Registry, store: BucketStore) -> None:
        self._registry = registry
        self._store = store

    async def subscribe(self, subscriber: Subscriber, if_exists: str) -> None:
        """Register a subscriber; the very same one again is no error.

        Raises JobExists if the name is taken by another one and `if_exists` is `fail`, or a config file declares it.
        """
        code = await self._registry.register("subscribers", entry_of(subscriber), if_exists)
        if code != Code.OK:
            raise JobExists(taken("subscriber", subscriber.name))

    async def check_declared(self, subscribers: Iterable[Subscriber]) -> None:
        """Raises StartupError if `declare` would."""
        await declared.check(self._registry, "subscribers", map(entry_of, subscribers))

    async def declare(self, subscribers: Iterable[Subscriber]) -> None:
        """Let these be all that the config file declares. Raises StartupError if a name was taken at run time."""
        await declared.declare(self._registry, "subscribers", [*map(entry_of, subscribers)])

    async def unsubscribe(self, name: str) -> None:
        """Drop a subscriber. Raises NoSuchJob if it is unknown, WrongState if a config file declares it."""
        code = await self._registry.unregister("subscribers", name)
        raise_unregistered("subscriber", name, code)

    async def drop(self, subscriber: Subscriber) -> None:
        """Drop this very subscriber, unless it is gone or was replaced: it wants no more calls."""
        await self._registry.unregister("subscribers", subscriber.name, subscriber.definition)

    async def pause(self, name: str) -> None:
        """Have a subscriber called no more until it is resumed. Raises NoSuchJob if it is unknown."""
        await self._pause(name, is_paused=True)

    async def resume(self, name: str) -> None:
        """Have it called again. Raises NoSuchJob if it is unknown."""
        await self._pause(name, is_paused=False)

    async def _pause(self, name: str, *, is_paused: bool) -> None:
        code = await self._registry.pause_subscriber(name, is_paused=is_paused)
        raise_unregistered("subscriber", name, code)

    async def named(self, name: str) -> Subscriber:
        """The subscriber of this name. Raises NoSuchJob if it is unknown."""
        entries = (await self._registry.registered("subscribers", name=name)).entries or []
        for found in await _read(entries):
            return found.subscriber
        raise unknown("subscriber", name)

    async def all(self) -> list[Subscribed]:
        """Every subscriber, by topic in the order in which they are called."""
        return await _read((await self._registry.registered("subscribers")).entries or [])

    async def calls(self, names: Sequence[str]) -> dict[str, Calls]:
        """How the calls of these subscribers went within a day."""
        return await calls_of(self._store, names)

    async def changes(self, known: str) -> tuple[str, list[Subscribed] | None]:
        """The revision of the subscribers; and all of them, where that is not the known one."""
        revision, entries = await self._registry.registered("subscribers", known)
        return revision, None if entries is None else await _read(entries)


def taken(kind: str, name: str) -> Text:
    """What is said of a name that is taken."""
    return Text(
        f"{name} 已存在: 使用其他名称, 或 if_exists = replace (配置文件里的须在文件中修改)",
        f"{name}: another {kind} has this name; choose another one, or replace it with if_exists "
        "(one that stands in a config file is changed there)",
    )


def raise_unregistered(kind: str, name: str, code: int) -> None:
    """Raise what the code of an unregistering means."""
    if code == Code.NO_SUCH_JOB:
        raise unknown(kind, name)
    if code == Code.WRONG_STATE:
        raise WrongState(
            Text(
                f"{name} 在配置文件中, 请从文件中删除",
                f"{name}: stands in a config file; remove it there and start the servers anew",
            )
        )


def unknown(kind: str, name: str) -> NoSuchJob:
    """What is raised of a name that nobody has."""
    return NoSuchJob(Text(f"{name} 不存在", f"{name}: no such {kind}"))


async def read_all(
    read: Callable[[str], T], entries: Iterable[Entry]
) -> AsyncIterator[tuple[Entry, T]]:
    """What stands in the store, by turns; what cannot be read is left out and told to the log."""
    async for entry in by_turns(entries):
        try:
            found = read(entry.definition)
        except ValueError as error:
            log.error("%r stands in the store and cannot be read: %s", entry.name, error)  # noqa: TRY400
        else:
            yield entry, found


async def _read(entries: Iterable[Entry]) -> list[Subscribed]:
    found = [
        Subscribed(one, entry.time_ms) async for entry, one in read_all(Subscriber.read, entries)
    ]
    return sorted(
        found, key=lambda one: (one.subscriber.topic, one.subscriber.order, one.subscriber.name)
    )
