"""The subscribers that all servers share: registering them, and knowing them without a call for each job."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from delayqueue.domain.subscriber import Subscriber
from delayqueue.engine import declared
from delayqueue.engine.declared import entry_of
from delayqueue.errors import Code, JobExists, NoSuchJob, Text, WrongState
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.registry import Registry
from delayqueue.store.entries import Entry
from delayqueue.store.subscriber_calls import SubscriberCalls, calls_of
from delayqueue.tasks import by_turns

log = logging.getLogger(__name__)

T = TypeVar("T")


class Subscribed(NamedTuple):
    """A subscriber, and since when it is paused, None = not paused."""

    subscriber: Subscriber
    paused_ms: int | None


class Subscribers:
    """The verbs on subscribers. All raise Unavailable if the store does not answer."""

    def __init__(self, registry: Registry, store: BucketStore) -> None:
        self._registry = registry
        self._store = store

    async def subscribe(self, subscriber: Subscriber, if_exists: str) -> None:
        """Register a subscriber; repeating the same one is no error.

        Raises JobExists if the name is taken by another one and `if_exists` is `fail`, or a config file declares it.
        """
        code = await self._registry.register("subscribers", entry_of(subscriber), if_exists)
        if code != Code.OK:
            raise JobExists(taken("subscriber", subscriber.name))

    async def check_declared(self, subscribers: Iterable[Subscriber]) -> None:
        """Raises StartupError if `declare` would."""
        await declared.check(self._registry, "subscribers", map(entry_of, subscribers))

    async def declare(self, subscribers: Iterable[Subscriber]) -> None:
        """Replace all subscribers that the config file declared before.

        Raises StartupError if a name was taken at run time.
        """
        await declared.declare(self._registry, "subscribers", [*map(entry_of, subscribers)])

    async def unsubscribe(self, name: str) -> None:
        """Remove a subscriber. Raises NoSuchJob if it is unknown, WrongState if a config file declares it."""
        code = await self._registry.unregister("subscribers", name)
        raise_unregistered("subscriber", name, code)

    async def drop(self, subscriber: Subscriber) -> None:
        """Remove this subscriber, unless it is gone or replaced: it wants no more calls."""
        await self._registry.unregister("subscribers", subscriber.name, subscriber.definition)

    async def pause(self, name: str) -> None:
        """Pause a subscriber's calls until it is resumed. Raises NoSuchJob if it is unknown."""
        await self._pause(name, is_paused=True)

    async def resume(self, name: str) -> None:
        """Resume a subscriber's calls. Raises NoSuchJob if it is unknown."""
        await self._pause(name, is_paused=False)

    async def _pause(self, name: str, *, is_paused: bool) -> None:
        code = await self._registry.pause_subscriber(name, is_paused=is_paused)
        raise_unregistered("subscriber", name, code)

    async def named(self, name: str) -> Subscriber:
        """The subscriber with this name. Raises NoSuchJob if it is unknown."""
        entries = (await self._registry.registered("subscribers", name=name)).entries or []
        for found in await _read(entries):
            return found.subscriber
        raise unknown("subscriber", name)

    async def all(self) -> list[Subscribed]:
        """Every subscriber, by topic in calling order."""
        return await _read((await self._registry.registered("subscribers")).entries or [])

    async def count(self) -> int:
        """How many subscribers there are."""
        return (await self._registry.state()).subscribers

    async def calls(self, names: Sequence[str]) -> dict[str, SubscriberCalls]:
        """The calls of these subscribers within the last day."""
        return await calls_of(self._store, names)

    async def changes(self, known: str) -> tuple[str, list[Subscribed] | None]:
        """The revision of the subscribers; and all of them, if that is not the known one."""
        revision, entries = await self._registry.registered("subscribers", known)
        return revision, None if entries is None else await _read(entries)


def taken(kind: str, name: str) -> Text:
    """The error message for a name that is taken."""
    return Text(
        f"{name} 已存在：使用其他名称，或 if_exists = replace（配置文件里的须在文件中修改）",
        f"{name}: another {kind} has this name; choose another one, or replace it with if_exists "
        "(one from a config file can only be changed there)",
    )


def raise_unregistered(kind: str, name: str, code: int) -> None:
    """Raise the error for the code of an unregistering."""
    if code == Code.NO_SUCH_JOB:
        raise unknown(kind, name)
    if code == Code.WRONG_STATE:
        raise WrongState(
            Text(
                f"{name} 在配置文件中，请从文件中删除",
                f"{name}: comes from a config file; remove it there and restart the servers",
            )
        )


def unknown(kind: str, name: str) -> NoSuchJob:
    """The error for a name that is not registered."""
    return NoSuchJob(Text(f"{name} 不存在", f"{name}: no such {kind}"))


async def read_all(
    read: Callable[[str], T], entries: Iterable[Entry]
) -> AsyncIterator[tuple[Entry, T]]:
    """The store's entries, yielding to other tasks; unreadable ones are left out and logged."""
    async for entry in by_turns(entries):
        try:
            found = read(entry.definition)
        except ValueError as error:
            # a warning: of one that is read again and again, the log leaves most out
            log.warning("%r in the store cannot be read: %s", entry.name, error)
        else:
            yield entry, found


async def _read(entries: Iterable[Entry]) -> list[Subscribed]:
    found = [
        Subscribed(one, entry.time_ms) async for entry, one in read_all(Subscriber.read, entries)
    ]
    return sorted(
        found, key=lambda one: (one.subscriber.topic, one.subscriber.order, one.subscriber.name)
    )
