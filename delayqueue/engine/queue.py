"""The delay queue inside one server process."""

from collections.abc import Callable, Coroutine
from functools import partial

from delayqueue.domain.access import Scope
from delayqueue.domain.troubles import Troubles
from delayqueue.engine.heartbeat import Heartbeat
from delayqueue.engine.history import HistoryRecorder
from delayqueue.engine.jobs import Jobs
from delayqueue.engine.notes import Notes
from delayqueue.engine.polls import Polls
from delayqueue.engine.schedules import Schedules
from delayqueue.engine.settings_repair import SettingsRepair
from delayqueue.engine.subscribers import Subscribers
from delayqueue.engine.take_service import TakeService
from delayqueue.engine.timers import Timers, stale_before
from delayqueue.engine.workers import Workers
from delayqueue.errors import Text
from delayqueue.metrics import BUCKETS_AWAY, WAITING_POLLS
from delayqueue.store.announcements import listen
from delayqueue.store.store import Store


class DelayQueue:
    """What belongs to the process: timers, waiting polls, background loops. The verbs on jobs need a scope.

    Whatever asks the store raises Unavailable if that does not answer.
    """

    def __init__(
        self,
        store: Store,
        max_polls: int = 0,
        name: str = "",
        *,
        buried_retain_ms: int | None = None,
        keeps_history: bool = False,
    ) -> None:
        self.metrics = store.metrics
        self.metrics.show(WAITING_POLLS, lambda: self._polls.waiting)
        self.metrics.show(BUCKETS_AWAY, lambda: len(self.stale_buckets()))
        self.store = store
        self._polls = Polls(store, max_polls)
        self._taking = TakeService(store)
        self.workers = Workers(store, name)
        self.subscribers = Subscribers(store)
        self.schedules = Schedules(store.registry)
        self.notes = Notes(store.registry)
        self.troubles = Troubles()
        self.timers = Timers(
            store, self._polls.matcher.resync, self.troubles.note_timeout, buried_retain_ms
        )
        self.heartbeat = Heartbeat(store.registry, self.metrics, name, self.troubles)
        self.history = HistoryRecorder(store, self.metrics, name, self.stale_buckets)
        self._settings_repair = SettingsRepair(store)
        self._keeps_history = keeps_history
        store.buckets.on_change(self._polls.grow)
        store.on_ready(self._polls.matcher.notify)

    def within(self, scope: Scope) -> Jobs:
        """The verbs on jobs, for a client that may reach the topics of a scope."""
        return Jobs(self.store, self._polls, self._taking, self.workers, scope)

    def stale_buckets(self) -> list[int]:
        """Buckets that do not work: their timer has not ticked recently, or their store accepts no writes.

        A tick writes only what is due, so a store with a full disk keeps answering. The heartbeat writes to the first
        bucket every two seconds; if nothing arrives there, all buckets of that server count as stale.
        """
        stale, noted_at = self.timers.stale(), self.heartbeat.noted_at
        if noted_at is None or noted_at < stale_before():
            stale.update(self.store.buckets_beside(0))
        return sorted(stale)

    async def unready_buckets(self) -> list[int]:
        """Buckets that do not work, or whose last call failed, or whose server does not answer right now."""
        unready = {*self.stale_buckets(), *await self.store.unreachable_buckets()}
        if self.heartbeat.has_failed:
            unready.update(self.store.buckets_beside(0))
        return sorted(unready)

    def ailment(self) -> Text | None:
        """Why the store is unavailable; None if it is well."""
        return self.store.ailment() or self.store.watch.ailment

    def background(self) -> dict[str, Callable[[], Coroutine[None, None, None]]]:
        """The loops that must run, by name; the server owns their tasks."""
        loops = {"history": self.history.run} if self._keeps_history else {}
        return loops | {
            "wakeups": partial(
                listen, self.store, self._polls.matcher.notify, self._polls.ends.ended, self._resync
            ),
            "waits for ends": self._polls.ends.run,
            "heartbeat": self.heartbeat.run,
            "workers": self.workers.run,
            "schedules": self.schedules.run,
            "timers": self.timers.run,
            "settings of topics": self._settings_repair.run,
            "watch": self.store.watch.run,
        }

    def _resync(self, bucket: int) -> None:
        """Ask the bucket again soon: its announcements may have been lost."""
        self._polls.matcher.resync(bucket)
        self._polls.ends.resync()

    async def drain(self) -> None:
        """Answer every poll with nothing from now on, and put back what was reserved for it."""
        await self._polls.close()

    async def aclose(self) -> None:
        """Drain it, and wait until all that was to be put back has been, and each bucket has the topics' settings."""
        await self.drain()
        await self.store.changes.ended()
        await self._taking.close()
