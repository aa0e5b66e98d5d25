"""The requests of each verb: most verbs call one endpoint, some call several."""

import time
from collections.abc import Callable
from typing import Any, Final

from delayqueue.cli.remote_server import RemoteServer, RequestError
from delayqueue.cli.subcommand import USAGE
from delayqueue.cli.words import UNLIMITED
from delayqueue.client.jobs import DEFAULT_TTR_S, new_id
from delayqueue.domain.job import LIVE_STATES, MAX_BATCH, IfExists, State

Fields = dict[str, Any]  # of a request, with the names in docs/api.md
Ask = Callable[[RemoteServer, Fields], Any]
GiveBack = Callable[[RemoteServer, Any], object]

DEFAULT_COUNT: Final = 100
PEEK_COUNT: Final = 10
FORECAST_S: Final = 86_400
CALL: Final = ("url", "method", "headers", "timeout", "expect", "give_up")  # fields of a job's call
SUMS: Final = ("topics", "paused", *map(str, LIVE_STATES), "oldest_ready_age")


def at(path: str, wait_s: float = 0) -> Ask:
    """Send the fields to one endpoint; its answer may take `wait_s`.

    A single one of `ids` is sent as `id`: only with `id` a receipt is accepted, and an error has a message.
    """

    def ask(server: RemoteServer, fields: Fields) -> Any:
        ids = fields.get("ids")
        if isinstance(ids, list):  # for /buried it is a number
            del fields["ids"]
            fields |= {"id": ids[0]} if len(ids) == 1 else {"ids": ids} if ids else {}
        return server.post(path, fields, wait_s)

    return ask


def limit(server: RemoteServer, fields: Fields) -> Any:
    """The limits in force."""
    limits = {name: value for name, value in fields.items() if name != "topic"}
    lifted = {name: None for name, value in limits.items() if value == UNLIMITED}
    return server.post("/limit", fields | lifted)


def push(server: RemoteServer, fields: Fields) -> Any:
    """The id, whether given or generated."""
    if "due" not in fields:
        fields.setdefault("delay", 0)  # a server with `require_delay` wants it said
    return server.post("/push", _with_call(fields)) or {"id": fields["id"]}


def schedule(server: RemoteServer, fields: Fields) -> Any:
    """The next occurrence."""
    return server.post("/schedule", _with_call(fields))


def _with_call(fields: Fields) -> Fields:
    """The fields, with those of a call as the object that requests have."""
    of_call = {name: fields.pop(f"call_{name}", None) for name in CALL}
    given = {name: value for name, value in of_call.items() if value is not None}
    return fields | {"call": _with_headers(given)} if given else fields


def _with_headers(fields: Fields) -> Fields:
    """The fields, with pairs of names and values as the headers that requests have.

    Raises RequestError if a name is there twice, which a JSON object cannot say.
    """
    if "headers" not in fields:
        return fields
    headers: dict[str, str] = {}
    for name, value in fields["headers"]:
        if name in headers:
            raise RequestError(USAGE, f"the header {name} is there twice; give it once")
        headers[name] = value
    return fields | {"headers": headers}


def pop(server: RemoteServer, fields: Fields) -> Any:
    """The ready jobs, or the first one to become ready."""
    return server.post("/pop", fields, wait_s=fields["timeout"])


def release(server: RemoteServer, popped: Any) -> None:
    """Give reserved jobs back now. If a call fails, the others come back after their TTR."""
    for job in popped if isinstance(popped, list) else [popped]:
        server.post("/release", {"id": job["id"], "receipt": job["receipt"], "delay": 0})


def push_back(server: RemoteServer, taken: list[Fields]) -> None:
    """Push jobs that /take has removed, unless their ids were pushed since.

    Each has a request of its own: all of them can be too large for one. Raises RequestError if one was refused,
    after it has tried the others.
    """
    refused: list[RequestError] = []
    for job in taken:
        try:
            server.post("/push", _as_pushed(job))
        except RequestError as error:
            refused.append(error)
    if refused:
        raise refused[0]


def _as_pushed(job: Fields) -> Fields:
    """A job of /take's answer as a request to /push.

    The values of its call's headers stay `***`, so that the receiver refuses the call. If it has `retain`, there is a
    record of its end, and a push with its own key would count as made: one with another key replaces that record only.
    """
    request: Fields = {"ttr": DEFAULT_TTR_S} | job | {"if_exists": IfExists.KEEP.value}
    if "retry" in request:
        request["retry"] = {"delays": request["retry"]}
    if "expires" in request:
        request["expire"] = max(0.001, round(request.pop("expires") - job["due"], 3))
    if "retain" in request:
        request["idempotency_key"] = f"given back {new_id()}"
    return request


def get(server: RemoteServer, fields: Fields) -> Any:
    """The jobs; with `timeout` the one job, once it has ended."""
    return at("/get", fields.get("timeout", 0))(server, fields)


def listed(server: RemoteServer, fields: Fields) -> list[Fields]:
    """The first `limit` jobs, over any number of pages or topics."""
    wanted, state = fields.pop("limit", DEFAULT_COUNT), fields.get("state")
    if state not in LIVE_STATES or fields.keys() & {"topic", "tag"}:
        return _pages("/list", server, fields, wanted)
    jobs: list[Fields] = []
    for topic in _topics_with(server, state):
        if len(jobs) >= wanted:
            break
        of_topic = fields | {"topic": topic["topic"]}
        jobs += _pages("/list", server, of_topic, wanted - len(jobs))
    return jobs


def find(server: RemoteServer, fields: Fields) -> list[Fields]:
    """The first `limit` jobs that are found, in any number of calls."""
    return _pages("/find", server, fields, fields.pop("limit", DEFAULT_COUNT))


def registered(kind: str) -> Ask:
    """List all subscribers or schedules, or the first `limit`, in one answer: older servers have no pages."""

    def ask(server: RemoteServer, fields: Fields) -> Any:
        limit = fields.pop("limit", None)
        return server.post(f"/{kind}", fields)[:limit]

    return ask


def _pages(path: str, server: RemoteServer, fields: Fields, wanted: int) -> list[Fields]:
    """The first `wanted` jobs that an endpoint lists."""
    found: list[Fields] = []
    cursor = ""
    while True:
        page = {"limit": min(wanted - len(found), MAX_BATCH), "cursor": cursor}
        answer = server.post(path, fields | page)
        found += answer["jobs"]
        if not answer["cursor"] or len(found) >= wanted:
            return found
        if answer["cursor"] == cursor:  # not our server's: it would never end
            raise ValueError(f"cursor {cursor!r} leads to itself")
        cursor = answer["cursor"]


def peek(server: RemoteServer, fields: Fields) -> list[Fields]:
    """The jobs that will be delivered next: ready ones, then delayed ones."""
    wanted = fields.pop("count", PEEK_COUNT)
    jobs = listed(server, fields | {"state": "ready", "limit": wanted})
    if len(jobs) < wanted:
        jobs += listed(server, fields | {"state": "delayed", "limit": wanted - len(jobs)})
    return jobs


def _topics_with(server: RemoteServer, state: str) -> list[Fields]:
    """The topics that have jobs in that state."""
    return [topic for topic in server.post("/topics", {}) if topic[state]]


def kick(server: RemoteServer, fields: Fields) -> Any:
    """With `all`, kick as many jobs of each topic as it has at first: jobs that fail again meanwhile are left."""
    if not fields.pop("all", False) or "tag" in fields:  # with a tag, all of them are kicked anyway
        return at("/kick")(server, fields)
    if fields.get("ids") or fields.keys() & {"count", "body"}:
        raise RequestError(USAGE, "--all: goes with --topic, --tag or --state only")
    state = fields.setdefault("state", State.BURIED.value)
    if state not in LIVE_STATES:
        return server.post("/kick", fields)  # the server says what is wrong
    kicked = 0
    for topic in _topics_with(server, state):
        if fields.get("topic", topic["topic"]) == topic["topic"]:
            kicked += _kick_topic(server, topic["topic"], state, topic[state])
    return {"count": kicked}


def _kick_topic(server: RemoteServer, topic: str, state: str, most: int) -> int:
    left, found = most, True
    while left and found:
        fields = {"topic": topic, "state": state, "count": min(left, MAX_BATCH)}
        found = server.post("/kick", fields)["count"]
        left -= found
    return most - left


def forecast(server: RemoteServer, fields: Fields) -> Any:
    """How many jobs fall due in each step; by default, of the next day."""
    start_s = fields.setdefault("start", time.time())
    return server.post("/forecast", {"end": start_s + FORECAST_S} | fields)


def subscribe(server: RemoteServer, fields: Fields) -> Any:
    """`--url` is the server's address, so the subscriber's URL has another name here."""
    if "webhook" in fields:
        fields["url"] = fields.pop("webhook")
    elif "://" in fields.get("topic", ""):
        raise RequestError(
            USAGE, f"{fields['topic']} is in the place of TOPIC; give NAME TOPIC URL"
        )
    return server.post("/subscribe", _with_headers(fields))


def stats(server: RemoteServer, _fields: Fields) -> Fields:
    """The sums over all topics."""
    told = server.post("/stats", {})
    return {name: told[name] for name in SUMS if name in told}  # an older server counts fewer
