"""What the calls of /admin cost with 10,000 topics, a million jobs and 10,000 dead letters of 20 reasons."""

import statistics
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from bench.measure import SLEEP_FROM_S, Figure, Measure, Outcome, Scale
from bench.processes import cpu_seconds, listeners
from bench.target import Server
from delayqueue.client import Client, Job
from delayqueue.client.calls import Call

TOPICS: Final = 10_000
TROUBLED: Final = 50  # topics with dead letters
REASONS: Final = 20
TAGGED: Final = 2_000  # jobs
BATCH: Final = 1_000  # jobs of a push
ROUNDS: Final = 5  # of each call
BODY: Final = '{"order": 1001, "user": 7, "kind": "page"}'
HOUR_S: Final = 3_600
DAY_S: Final = 86_400

Asked = dict[str, Any]


def page(server: Server, scale: Scale) -> Outcome:
    """What each call of the page takes."""
    figures: dict[str, Figure] = {}
    with Client(server.url, timeout=60) as queue:
        _fill(queue, scale)
        for name, path, asked in _calls():
            figures |= _measured(server, queue, name, Call(path, asked, read=type))
    return Outcome(figures)


def _fill(queue: Client, scale: Scale) -> None:
    jobs = _jobs(scale.page_jobs)
    while piece := list(islice(jobs, BATCH)):
        queue.push_many(piece)
    left = scale.page_dead
    for start in range(0, left, BATCH):
        queue.push_many([Job(topic=_topic(n % TROUBLED)) for n in range(start, start + BATCH)])
    topics = [_topic(n) for n in range(TROUBLED)]
    while left:
        for job in queue.pop_many(*topics, count=BATCH, wait=5):
            left -= 1
            queue.bury(
                job, message=f"{chr(ord('A') + left % REASONS)}: order {left + 10**6} was refused"
            )


def _jobs(count: int) -> Iterator[Job]:
    for number in range(count):
        yield Job(
            topic=_topic(number % TOPICS),
            body=BODY,
            id=f"page-{number:07}",
            delay=SLEEP_FROM_S * (0.02 + number % 1000 / 1000),
            tags=("page",) if number < TAGGED else (),
        )


def _topic(number: int) -> str:
    return f"topic-{number:05}"


def _calls() -> list[tuple[str, str, Asked]]:
    """The calls of each page, as in js/pages."""
    now = time.time()
    hour, day = ({"start": now, "end": now + span, "step": span / 60} for span in (HOUR_S, DAY_S))
    return [
        ("overview: stats", "/stats", {}),
        ("overview: an hour ahead", "/forecast", hour),
        ("overview: a day ahead", "/forecast", day),
        ("overview: three hours past", "/history", {"span": "3h"}),
        ("topics", "/topics", {"sort": "topic", "limit": 101}),
        ("topics: by buried", "/topics", {"sort": "buried", "limit": 101}),
        ("topics: of a name", "/topics", {"match": "99", "limit": 101}),
        ("topic: counts", "/topics", {"topics": [_topic(0)]}),
        ("topic: jobs", "/list", {"topic": _topic(0), "limit": 50}),
        ("topic: buried", "/list", {"topic": _topic(0), "state": "buried", "limit": 50}),
        ("topic: select all", "/list", {"topic": _topic(0), "limit": 1000}),
        ("topic: a day ahead", "/forecast", {"topic": _topic(0)} | day),
        ("dead letters", "/buried", {}),
        ("dead letters: a group", "/buried", {"reason": "A: order # was refused", "ids": 10_000}),
        ("job", "/get", {"id": "page-0000000"}),
        ("tag", "/list", {"tag": "page", "limit": 50}),
        ("search: part of an id", "/find", {"id": "no such id"}),
        ("search: text in bodies", "/find", {"topic": _topic(0), "text": "no such text"}),
        ("subscribers", "/subscribers", {"calls": True}),
        ("schedules", "/schedules", {}),
    ]


def _measured(server: Server, queue: Client, name: str, call: Call[object]) -> dict[str, Figure]:
    pids = listeners(server.port)
    store = server.seen()
    waits_s, store_ms, longest_ms = [], [], []
    before_s = cpu_seconds(pids)
    for _ in range(ROUNDS):
        store.forget()
        began_at = time.perf_counter()
        queue.send(call)
        waits_s.append(time.perf_counter() - began_at)
        total, longest = store.busy_ms()
        store_ms.append(total)
        longest_ms.append(longest)
    cpu_ms = 1000 * (cpu_seconds(pids) - before_s) / ROUNDS
    return {
        f"{name}: answer": Figure(1000 * statistics.median(waits_s), "ms"),
        f"{name}: server": Figure(cpu_ms, "ms"),
        f"{name}: store": Figure(statistics.median(store_ms), "ms"),
        f"{name}: longest store call": Figure(statistics.median(longest_ms), "ms"),
    }


MEASURES: Final = (
    Measure(
        "page",
        "calls of /admin with 10,000 topics, a million jobs",
        page,
        repeated=False,
        by_default=False,
    ),
)
