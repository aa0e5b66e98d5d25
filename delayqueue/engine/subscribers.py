"""The subscribers that all servers share: registering them, and knowing them without a call for each job."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from delayqueue.answers import subscribers as answers
from delayqueue.answers.answer import LEFT_OUT, seconds
from delayqueue.domain.subscriber import Subscriber
from delayqueue.engine.job_answers import without_values
from delayqueue.engine.registrations import Registrations, read_all
from delayqueue.store.registry import Entry, calls_of
from delayqueue.store.store import Store
from delayqueue.tasks import by_turns


class Subscribed(NamedTuple):
    """A subscriber, and since when it is paused, None = not paused."""

    subscriber: Subscriber
    paused_ms: int | None


class Subscribers(Registrations[Subscriber]):
    """The verbs on subscribers. All raise Unavailable if the store does not answer."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.registry, "subscribers", Subscriber.read)
        self._store = store

    async def drop(self, subscriber: Subscriber) -> None:
        """Remove this subscriber, unless it is gone or replaced: it wants no more calls."""
        await self._registry.unregister("subscribers", subscriber.name, subscriber.definition)

    async def pause(self, name: str) -> None:
        """Pause a subscriber's calls until it is resumed. Raises NoSuchJob if it is unknown."""
        self._raise_for(await self._registry.pause_subscriber(name, is_paused=True), name)

    async def resume(self, name: str) -> None:
        """Resume a subscriber's calls. Raises NoSuchJob if it is unknown."""
        self._raise_for(await self._registry.pause_subscriber(name, is_paused=False), name)

    async def named(self, name: str) -> Subscriber:
        """The subscriber with this name. Raises NoSuchJob if it is unknown."""
        for found in await _read(await self._stored(name)):
            return found.subscriber
        raise self._unknown(name)

    async def all(self) -> list[answers.Subscriber]:
        """Every subscriber, by topic in calling order, without its calls."""
        found = await _read(await self._stored())
        return [_answer(one) async for one in by_turns(found)]

    async def with_calls(
        self, subscribers: Sequence[answers.Subscriber]
    ) -> list[answers.Subscriber]:
        """These subscribers, each with its calls within the last day."""
        calls = await calls_of(self._store, [one.name for one in subscribers])
        return [replace(one, calls=calls[one.name]) for one in subscribers]

    async def changes(self, known: str | None) -> tuple[str, list[Subscribed] | None]:
        """The revision of the subscribers; and all of them, if that is not the known one."""
        revision, entries, _ = await self._registry.registered("subscribers", known)
        return revision, None if entries is None else await _read(entries)


def calling_order(one: Subscriber | answers.Subscriber) -> tuple[str, int, str]:
    """The sort key of a subscriber: its topic, then its place among those that are called for it."""
    return one.topic, one.order, one.name


async def _read(entries: Iterable[Entry]) -> list[Subscribed]:
    found = [
        Subscribed(one, entry.time_ms) async for entry, one in read_all(Subscriber.read, entries)
    ]
    return sorted(found, key=lambda one: calling_order(one.subscriber))


def _answer(found: Subscribed) -> answers.Subscriber:
    """A subscriber as clients see it; its secret and the values of its headers stay in the server."""
    one = found.subscriber
    return answers.Subscriber(
        name=one.name,
        topic=one.topic,
        order=one.order,
        url=one.url,
        handler=one.handler,
        timeout=one.timeout_ms / 1000,
        retry=tuple(delay_ms / 1000 for delay_ms in one.retry_ms),
        concurrency=one.concurrency,
        signed=bool(one.secret),
        declared=one.declared,
        expect=one.expect,
        on_failure=one.on_failure.value,
        payload=one.payload.value,
        method=one.method.value,
        headers=without_values(name for name, _ in one.headers),
        paused=seconds(found.paused_ms),
        calls=LEFT_OUT,
    )
