"""What the verbs ask a server: most of them one endpoint, some of them more."""

import time
from collections.abc import Callable
from typing import Any, Final

from delayqueue.cli.call import Server
from delayqueue.cli.words import UNLIMITED
from delayqueue.domain.job import LIVE_STATES, MAX_BATCH

Fields = dict[str, Any]  # of a request, as docs/api.md names them
Ask = Callable[[Server, Fields], Any]

DEFAULT_COUNT: Final = 100
PEEK_COUNT: Final = 10
FORECAST_S: Final = 86_400


def at(path: str, wait_s: float = 0) -> Ask:
    """Send the fields to one endpoint, as they are; its answer may take so long."""
    return lambda server, fields: server.call(path, fields, wait_s)


def one_or_many(path: str) -> Ask:
    """Send `ids` as `id` where there is one only: only then a receipt is taken, and the error is a message."""

    def ask(server: Server, fields: Fields) -> Any:
        ids = fields.pop("ids", [])
        named = {"id": ids[0]} if len(ids) == 1 else {"ids": ids} if ids else {}
        return server.call(path, fields | named)

    return ask


def limit(server: Server, fields: Fields) -> Any:
    """The limits in force."""
    limits = {name: value for name, value in fields.items() if name != "topic"}
    lifted = {name: None for name, value in limits.items() if value == UNLIMITED}
    return server.call("/limit", fields | lifted)


def push(server: Server, fields: Fields) -> Any:
    """The id, whoever made it."""
    return server.call("/push", fields) or {"id": fields["id"]}


def pop(server: Server, fields: Fields) -> Any:
    """The jobs that are ready, or the first one to become so."""
    return server.call("/pop", fields, wait_s=fields["timeout"])


def listed(server: Server, fields: Fields) -> list[Fields]:
    """The first `limit` jobs, however many pages that are."""
    jobs: list[Fields] = []
    wanted, cursor = fields.pop("limit", DEFAULT_COUNT), ""
    while True:
        page = {"limit": min(wanted - len(jobs), MAX_BATCH), "cursor": cursor}
        answer = server.call("/list", fields | page)
        jobs += answer["jobs"]
        cursor = answer["cursor"]
        if not cursor or len(jobs) >= wanted:
            return jobs


def find(server: Server, fields: Fields) -> list[Fields]:
    """The first `limit` jobs that are found, however many calls that takes."""
    jobs: list[Fields] = []
    wanted, cursor = fields.pop("limit", DEFAULT_COUNT), ""
    while True:
        answer = server.call("/find", fields | {"limit": min(wanted, MAX_BATCH), "cursor": cursor})
        jobs += answer["jobs"]
        cursor = answer["cursor"]
        if not cursor or len(jobs) >= wanted:
            return jobs[:wanted]


def peek(server: Server, fields: Fields) -> list[Fields]:
    """The jobs that will be delivered next: those that are ready, then the delayed ones."""
    wanted = fields.pop("count", PEEK_COUNT)
    jobs = listed(server, fields | {"state": "ready", "limit": wanted})
    if len(jobs) < wanted:
        jobs += listed(server, fields | {"state": "delayed", "limit": wanted - len(jobs)})
    return jobs


def forecast(server: Server, fields: Fields) -> Any:
    """The next day from now, where nothing else is said."""
    start_s = fields.setdefault("start", time.time())
    return server.call("/forecast", {"end": start_s + FORECAST_S} | fields)


def subscribe(server: Server, fields: Fields) -> Any:
    """`--url` leads to the server, so the subscriber's url has another name here."""
    url = fields.pop("webhook")
    return server.call("/subscribe", fields | {"url": url})


def stats(server: Server, _fields: Fields) -> Fields:
    """The sums over all topics."""
    topics = server.call("/topics", {})
    ages = [topic["oldest_ready_age"] or 0 for topic in topics]
    return {
        "topics": len(topics),
        "paused": sum(topic["paused"] is not False for topic in topics),
        **{name: sum(topic[name] for topic in topics) for name in LIVE_STATES},
        "oldest_ready_age": max(ages, default=0),
    }
