"""The servers and their store as a Python program sees them, and the verbs that ask for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delayqueue.client.calls import Call, verb
from delayqueue.client.fields import read
from delayqueue.client.topics import TopicCounts, topic_counts


@dataclass(frozen=True, slots=True)
class ServerStats:
    """A server process: jobs since it `started`, polls that wait, lateness of the last minute in seconds."""

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
    """The store: memory in bytes, `memory_limit` 0 = none."""

    version: str
    memory: int
    memory_limit: int
    durable: bool
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Attention:
    """A topic that somebody should look at, and why: `buried`, `late`, `paused`."""

    topic: TopicCounts
    why: list[str]


@dataclass(frozen=True, slots=True)
class Stats:
    """The sums over all topics, the busiest topics and those that need attention, and who serves them."""

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


@dataclass(frozen=True, slots=True)
class Access:
    """What a token is good for: its roles, and the topics that it may reach."""

    roles: list[str]
    topics: list[str]


class ServerVerbs:
    """/stats and /whoami."""

    @verb
    def stats(self) -> Call[Stats]:
        """All in short."""
        return Call("/stats", {}, _stats, repeatable=True)

    @verb
    def whoami(self) -> Call[Access]:
        """What the client's token is good for."""
        return Call("/whoami", {}, lambda data: read(Access, data), repeatable=True)


def _stats(data: dict[str, Any]) -> Stats:
    parts = {
        "busiest": [topic_counts(topic) for topic in data["busiest"]],
        "attention": [
            Attention(topic_counts(one["topic"]), one["why"]) for one in data.get("attention", ())
        ],  # an older server does not say it
        "servers": [read(ServerStats, server) for server in data["servers"]],
        "store": read(StoreStats, data["store"]),
    }
    return read(Stats, data | parts)
