"""The servers and their store as a Python program sees them, and the verbs that ask about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from delayqueue.client.calls import Call, verb
from delayqueue.client.fields import each, given, listed, read
from delayqueue.client.topics import TopicCounts, topic_counts

Span = Literal["3h", "2d", "30d"]  # in steps of a minute, 10 minutes, an hour


@dataclass(frozen=True, slots=True)
class ServerStats:
    """A server process: jobs since it `started`, waiting polls, lateness in the last minute in seconds."""

    name: str
    version: str
    started: float
    seen: float
    pushed: int
    delivered: int
    finished: int
    waiting: int
    lateness_p50: float | None
    lateness_p99: float | None


@dataclass(frozen=True, slots=True)
class StoreStats:
    """The store: memory in bytes; `memory_limit` 0 = none."""

    version: str
    memory: int
    memory_limit: int
    durable: bool
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Attention:
    """A topic that needs attention, and why: `buried`, `late`, `paused`."""

    topic: TopicCounts
    why: list[str]


@dataclass(frozen=True, slots=True)
class Stats:
    """The sums over all topics, the busiest topics, those that need attention, the server processes and the store."""

    topics: int
    delayed: int
    ready: int
    reserved: int
    buried: int
    oldest_ready_age: float | None
    busiest: list[TopicCounts]
    attention: list[Attention]
    servers: list[ServerStats]
    store: StoreStats
    settings: dict[str, str]
    set_in: dict[str, str]
    paused: int = 0


@dataclass(frozen=True, slots=True)
class Access:
    """What a token allows: its roles, and the topics that it may reach."""

    roles: list[str]
    topics: list[str]


@dataclass(frozen=True, slots=True)
class HistoryMark:
    """A server was `started`, an `outage` lasted that many seconds, or a `failover` happened."""

    at: float
    kind: str
    lasted: float
    server: str


@dataclass(frozen=True, slots=True)
class History:
    """Figures per step of time, the first step at `start`; None = nothing is known.

    Jobs pushed, delivered and finished, failed attempts, lateness in seconds, the most jobs seen in a state.
    """

    start: float
    step: float
    pushed: list[int | None]
    delivered: list[int | None]
    finished: list[int | None]
    failed: list[int | None]
    lateness_mean: list[float | None]
    lateness_worst: list[float | None]
    delayed: list[int | None]
    ready: list[int | None]
    reserved: list[int | None]
    buried: list[int | None]
    marks: list[HistoryMark]


class ServerVerbs:
    """The endpoints /history, /stats and /whoami."""

    @verb
    def history(self, topic: str | None = None, *, span: Span | None = None) -> Call[History]:
        """Return the history of a topic, or of all topics together, over the last 3 hours or `span`."""
        return Call(
            "/history",
            given(topic=topic, span=span),
            lambda data: read(History, data | {"marks": each(HistoryMark, data["marks"])}),
            repeatable=True,
        )

    @verb
    def stats(self) -> Call[Stats]:
        """Return an overview of all topics, the server processes and the store."""
        return Call("/stats", {}, _stats, repeatable=True)

    @verb
    def whoami(self) -> Call[Access]:
        """Return what the client's token allows."""
        return Call("/whoami", {}, partial(read, Access), repeatable=True)


def _stats(data: dict[str, Any]) -> Stats:
    parts = {
        "busiest": [topic_counts(topic) for topic in listed(data["busiest"])],
        "attention": [
            Attention(topic_counts(one["topic"]), one["why"]) for one in data.get("attention", ())
        ],  # older servers leave it out
        "servers": each(ServerStats, data["servers"]),
        "store": read(StoreStats, data["store"]),
        "set_in": data.get("set_in", {}),  # older servers leave it out
    }
    return read(Stats, data | parts)
