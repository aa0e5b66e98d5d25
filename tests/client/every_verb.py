"""A call of each verb of the clients."""

from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from typing import Any, Final, NamedTuple

from delayqueue.client import Client, Job, ReservedJob
from delayqueue.client.api_request import ApiRequest

WEBHOOK: Final = "http://1.1.1.1/"  # never called: its topics have no jobs
FAR: Final = 4_000_000_000.0


class Scene(NamedTuple):
    """A topic with jobs in hand, delayed ones with the topic's name as tag, and things of that name."""

    topic: str
    held: ReservedJob
    delayed: str
    later: str  # another delayed one, due some minutes after that


SCENE: Final = Scene("t", ReservedJob("t", "a", "", 1, "r-1", 1.0), "b", "c")  # of no server


class Asked(Client):
    """Its verbs return their requests."""

    def send(self, request: ApiRequest[Any]) -> Any:
        """The request."""
        return request


def covers(result: Any, data: Any) -> bool:
    """Whether the result has all that is in the data."""
    if isinstance(data, dict):
        is_object = is_dataclass(result) and not isinstance(result, type)
        known: Any = asdict(result) if is_object else result
        return all(covers(known[name], value) for name, value in data.items())
    if isinstance(data, list):
        return all(covers(*pair) for pair in zip(result, data, strict=True))
    return bool(result == data)


# of a client, or of what has its methods
CALLS: Final[dict[str, Callable[[Any, Scene], Any]]] = {
    "buried": lambda c, s: c.buried(s.topic),
    "bury": lambda c, s: c.bury(s.held),
    "cancel": lambda c, s: c.cancel(s.topic),
    "delete": lambda c, s: c.delete(s.delayed),
    "delete_many": lambda c, s: c.delete_many([s.held, s.delayed]),
    "find": lambda c, s: c.find(id=s.delayed),
    "finish": lambda c, s: c.finish(s.held),
    "finish_many": lambda c, s: c.finish_many([s.held]),
    "forecast": lambda c, s: c.forecast(s.topic, start=FAR, end=FAR + 60, step=60),
    "get": lambda c, s: c.get(s.delayed),
    "get_many": lambda c, s: c.get_many([s.delayed]),
    "history": lambda c, s: c.history(s.topic),
    "kick": lambda c, s: c.kick(s.delayed),
    "kick_many": lambda c, s: c.kick_many([s.delayed]),
    "kick_tag": lambda c, s: c.kick_tag(s.topic, state="delayed"),
    "kick_topic": lambda c, s: c.kick_topic(s.topic, state="delayed"),
    "limit": lambda c, s: c.limit(s.topic, rate=100),
    "list_jobs": lambda c, s: c.list_jobs(s.topic),
    "pause": lambda c, s: c.pause(s.topic, length=60),
    "pause_subscriber": lambda c, s: c.pause_subscriber(s.topic),
    "pop": lambda c, s: c.pop(s.topic, wait=0),
    "pop_many": lambda c, s: c.pop_many(s.topic, count=2, wait=0),
    "preview_schedule": lambda c, _: c.preview_schedule(every=60),
    "purge": lambda c, s: c.purge(s.topic),
    "push": lambda c, s: c.push(s.topic),
    "push_many": lambda c, s: c.push_many([Job(topic=s.topic), Job(topic=s.topic)]),
    "release": lambda c, s: c.release(s.held, delay=60),
    "reschedule": lambda c, s: c.reschedule(s.delayed, due=FAR),
    "reschedule_many": lambda c, s: c.reschedule_many([s.delayed], due=FAR),
    "reschedule_tag": lambda c, s: c.reschedule_tag(s.topic, due=FAR),
    "accept_store": lambda c, _: c.accept_store(),
    "note": lambda c, s: c.note(s.topic, "being fixed"),
    "resume": lambda c, s: c.resume(s.topic),
    "resume_subscriber": lambda c, s: c.resume_subscriber(s.topic),
    "run_schedule": lambda c, s: c.run_schedule(s.topic),
    "schedule": lambda c, s: c.schedule(f"{s.topic}-2", s.topic, every=3600, if_exists="fail"),
    "schedules": lambda c, s: c.schedules(s.topic),
    "schedules_page": lambda c, s: c.schedules_page(s.topic, limit=5),
    "stats": lambda c, _: c.stats(),
    "subscribe": lambda c, s: c.subscribe(f"{s.topic}-2", "none", WEBHOOK, if_exists="fail"),
    "subscribers": lambda c, s: c.subscribers(s.topic),
    "subscribers_page": lambda c, s: c.subscribers_page(s.topic, limit=5),
    "take": lambda c, s: c.take(s.topic, start=0),
    "topics": lambda c, s: c.topics(s.topic),
    "touch": lambda c, s: c.touch(s.held, progress=40, message="page 4 of 10"),
    "try_subscriber": lambda c, _: c.try_subscriber("none"),
    "unschedule": lambda c, s: c.unschedule(s.topic),
    "unsubscribe": lambda c, s: c.unsubscribe(s.topic),
    "whoami": lambda c, _: c.whoami(),
    "workers": lambda c, _: c.workers(),
}
