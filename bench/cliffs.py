"""What a load on some topics does to the jobs of others: scenes, each beside a probe on a topic of its own."""

import math
import os
import signal
import sys
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Final

from bench.measure import Figure, Figures, Measure, Scale
from bench.probe import Probe, percentile
from bench.processes import (
    BenchError,
    interruptions,
    run_before_others,
    stolen_s,
    wait_until,
)
from bench.target import Server
from delayqueue.client import Client, Job, ReservedJob
from delayqueue.client.api_request import ApiRequest

BATCH: Final = 1_000  # jobs of a request
SETTLES_S: Final = 0.5  # the probe, before the load and after it
ENDS_S: Final = 120.0  # a scene, at most
LOOK_S: Final = 0.002
STALL_S: Final = 0.5
PUSHED_S: Final = 0.1  # from making a batch until it has been pushed
# times as long as pushing takes, as measured: what shall be due at once must be in before
SPARE: Final = 2
POPPED: Final = (
    10 * BATCH
)  # jobs that are taken at the start of each second, whose TTRs are over at the same time
DAY_S: Final = 86_400
TAG: Final = "cliff"
TOPIC: Final = "cliff"
LARGE_BYTES: Final = 1_000_000
LARGE: Final = 20  # jobs
OVERALL: Final = ("longest call of the store", "others late p99")
SLOW_US: Final = 300  # calls of the store that take longer are looked at


def cliffs(server: Server, scale: Scale) -> Figures:
    """Each scene in turn, on an empty store; `scale.cliff` is the share of the jobs that it takes."""
    figures: Figures = {}
    server.store.hold_rewrites()
    if not run_before_others(server.store.info("process_id")):
        print("  the store's longest calls include what others took away", file=sys.stderr)
    with Client(server.url, timeout=ENDS_S) as queue:
        for scene in SCENES:
            found = scene(server, queue, scale.cliff)
            for name, figure in found.items():  # a later scene can fail
                print(f"  {name}: {figure.value:,.1f} {figure.unit}", file=sys.stderr, flush=True)
            figures |= found
            server.store.flush()
    for what in OVERALL:
        worst = max(each.value for name, each in figures.items() if name.endswith(what))
        figures[f"all scenes: {what}"] = Figure(worst, "ms")
    return figures


def _beside(
    server: Server, name: str, act: Callable[[], object], due: float | None = None
) -> Figures:
    """Do that beside a probe. What the store does by itself begins at `due`."""
    if due:
        time.sleep(max(0.0, due - 2 * SETTLES_S - time.time()))
    probe, store = Probe(server.url), server.store
    pid = store.info("process_id")
    with probe.beside():
        time.sleep(SETTLES_S)
        store.forget(SLOW_US)
        interrupted, stolen = interruptions(pid), stolen_s()
        began_at = due or time.time()
        act()
        took_s = time.time() - began_at
        _, longest_ms = store.busy_ms()
        print(
            f"  {name}: longest call of the store: {store.slowest_verb()}; it was interrupted"
            f" {interruptions(pid) - interrupted} times, the machine for {stolen_s() - stolen:.2f} s",
            file=sys.stderr,
        )
        time.sleep(SETTLES_S)
    return {
        f"{name}: took": Figure(took_s, "s"),
        f"{name}: longest call of the store": Figure(longest_ms, "ms"),
        f"{name}: others' push p99": Figure(percentile(probe.pushes, 99, began_at), "ms"),
        f"{name}: others late p99": Figure(percentile(probe.arrivals, 99, began_at), "ms"),
        f"{name}: others late max": Figure(percentile(probe.arrivals, 100, began_at), "ms"),
    }


def _push(queue: Client, count: int, job: Callable[[int], Job]) -> None:
    for start in range(0, count, BATCH):
        batch = [job(number) for number in range(start, min(start + BATCH, count))]
        for result in queue.push_many(batch):
            if result.code:
                raise BenchError(f"a push was refused: {result.message}")


def _pushed_before(
    server: Server, queue: Client, jobs: int, job: Callable[[float, int], Job]
) -> float:
    """Push jobs that are made of a time and a number; returns the time.

    All are in before it, and there is time for the probe to settle.
    """
    began_at = time.monotonic()
    _push(queue, BATCH, lambda _: Job(topic=f"{TOPIC}-measured", delay=DAY_S))
    foreseen_s = SPARE * (time.monotonic() - began_at) * jobs / BATCH
    while True:
        server.store.flush()
        due = math.ceil(time.time() + 4 * SETTLES_S + foreseen_s)
        _push(queue, jobs, partial(job, due))
        if time.time() < due - 2 * SETTLES_S:
            return due
        foreseen_s *= 2


def _due_together(server: Server, queue: Client, jobs: int, topics: int) -> Figures:
    """Jobs that are due at once, in so many topics."""

    def job(due: float, number: int) -> Job:
        return Job(topic=f"{TOPIC}-{number % topics}", due=due)

    due = _pushed_before(server, queue, jobs, job)
    return _beside(
        server,
        f"{jobs:,} due in {topics:,} topics",
        lambda: wait_until(lambda: not server.store.due_topics(due), "all ready", ENDS_S, LOOK_S),
        due,
    )


def _many_topics(server: Server, queue: Client, share: float) -> Figures:
    jobs, topics = int(10_000 * share), int(100_000 * share)
    figures: Figures = {}
    for count, spread in (jobs, jobs), (10 * jobs, jobs), (10 * jobs, topics):
        figures |= _due_together(server, queue, count, spread)
        server.store.flush()
    return figures


def _stalled_store(server: Server, _: Client, __: float) -> Figures:
    """What is due in the half second after the store stood still."""
    store, probe = server.store.info("process_id"), Probe(server.url)
    with probe.beside():
        time.sleep(SETTLES_S)
        os.kill(store, signal.SIGSTOP)
        time.sleep(STALL_S)
        os.kill(store, signal.SIGCONT)
        back_at = time.time()
        time.sleep(SETTLES_S)
    late = percentile(probe.arrivals, 100, back_at)
    return {f"after a stall of {STALL_S} s: others late max": Figure(late, "ms")}


def _take_all(queue: Client, jobs: int) -> list[ReservedJob]:
    """Take that many jobs, batch by batch: an answer can have fewer than are ready."""
    taken: list[ReservedJob] = []
    while len(taken) < jobs:
        found = queue.pop_many(TOPIC, count=min(BATCH, jobs - len(taken)), wait=0)
        if not found:
            raise BenchError(f"{jobs - len(taken)} jobs are missing")
        taken += found
    return taken


def _expired_reservations(server: Server, queue: Client, share: float) -> Figures:
    """Jobs whose TTR is over at once: those that are taken a second later have a TTR that is a second shorter."""
    jobs = int(100_000 * share)
    seconds = jobs // POPPED
    longest_s = seconds + 2
    _push(queue, jobs, lambda number: Job(topic=TOPIC, ttr=longest_s - number // POPPED))
    began_at = time.time()
    for number in range(jobs // BATCH):
        time.sleep(max(0.0, began_at + number * BATCH // POPPED - time.time()))
        _take_all(queue, BATCH)
    return _beside(
        server,
        f"{jobs:,} TTRs over",
        lambda: wait_until(lambda: server.ready(TOPIC) >= jobs, "all again", ENDS_S, LOOK_S),
        began_at + longest_s,
    )


def _expired_jobs(server: Server, queue: Client, share: float) -> Figures:
    jobs = int(200_000 * share)

    def job(end: float, _: int) -> Job:
        return Job(topic=TOPIC, expire=end - time.time())

    end = _pushed_before(server, queue, jobs, job)

    def have_expired() -> bool:
        now = time.time()
        return now > end + PUSHED_S and not server.store.due_topics(now)

    return _beside(
        server,
        f"{jobs:,} expire",
        lambda: wait_until(have_expired, "all expired", ENDS_S, LOOK_S),
        end,
    )


def _bulk_verbs(server: Server, queue: Client, share: float) -> Figures:
    jobs = int(500_000 * share)

    def fill() -> None:
        _push(queue, jobs, lambda _: Job(topic=TOPIC, delay=DAY_S, tags=(TAG,)))

    fill()
    of_tag = f"of a tag of {jobs:,}"
    figures = {
        **_reading_verbs(server, queue),
        **_beside(server, f"/cancel {of_tag}, no job", lambda: queue.cancel(TAG, topic="none")),
        **_beside(server, f"/reschedule {of_tag}", lambda: queue.reschedule_tag(TAG, by=60)),
        **_beside(server, f"/kick {of_tag}", lambda: queue.kick_tag(TAG, state="delayed")),
        **_beside(server, f"/purge of {jobs:,}", lambda: queue.purge(TOPIC)),
    }
    fill()
    return figures | _beside(server, f"/cancel {of_tag}", lambda: queue.cancel(TAG))


def _reading_verbs(server: Server, queue: Client) -> Figures:
    """The verbs that read or take many jobs, one after the other."""
    now = time.time()
    ids = [job.id for job in queue.list_jobs(TOPIC, limit=BATCH).jobs]

    def read() -> None:
        queue.list_jobs(TOPIC, limit=BATCH)
        queue.list_jobs(tag=TAG, limit=BATCH)
        queue.get_many(ids)
        queue.find(text="nowhere", topic=TOPIC)
        queue.forecast(TOPIC, start=now, end=now + 2 * DAY_S, step=DAY_S // 100)
        queue.take(TOPIC, end=now + 2 * DAY_S, count=BATCH)

    return _beside(server, "/list, /get, /find, /forecast, /take", read)


def _counted_topics(server: Server, queue: Client, share: float) -> Figures:
    """What counts all topics, for each who asks."""
    topics = int(100_000 * share)
    _push(queue, topics, lambda number: Job(topic=f"{TOPIC}-{number}", delay=DAY_S))
    asks: dict[str, Callable[[], object]] = {
        "/stats": partial(queue.send, ApiRequest("/stats", {}, read=type)),
        "/topics": partial(queue.send, ApiRequest("/topics", {}, read=type)),
        "/metrics": lambda: urllib.request.urlopen(f"{server.url}/metrics").read(),
    }
    figures: Figures = {}
    for path, ask in asks.items():
        figures |= _beside(server, f"{path} of {topics:,} topics", ask)
    return figures


def _large_bodies(server: Server, queue: Client, _: float) -> Figures:
    store, body, figures = server.store, '"\n' * (LARGE_BYTES // 2), {}
    jobs = [Job(topic=TOPIC, body=body) for _ in range(LARGE)]
    taken: list[ReservedJob] = []
    acts: dict[str, Callable[[Job], object]] = {
        "push": lambda job: queue.push_many([job]),
        "pop": lambda _: taken.extend(queue.pop_many(TOPIC, count=1, wait=0)),
        "finish": lambda _: queue.finish(taken.pop()),
    }
    for name, act in acts.items():
        store.forget()
        for job in jobs:
            act(job)
        total_ms, _ = store.busy_ms()
        figures[f"{name} of 1 MB: store"] = Figure(total_ms / LARGE, "ms")
    return figures


def _grouped(groups: int, number: int) -> Job:
    return Job(topic=TOPIC, group=f"g{number % groups}", ttr=3600)


def _groups(server: Server, queue: Client, share: float) -> Figures:
    """Pops beside many groups, and beside one of many jobs."""
    jobs = int(1_000_000 * share)
    figures: Figures = {}
    for name, groups in (f"{jobs:,} groups of a job", jobs), (f"a group of {jobs:,} jobs", 1):
        _push(queue, jobs, partial(_grouped, groups))
        figures |= _beside(server, f"{name}: pop of {POPPED:,}", lambda: _take_all(queue, POPPED))
        server.store.flush()
    return figures


def _held_groups(server: Server, queue: Client, share: float) -> Figures:
    """Groups whose one place is taken: pops find nothing, and each end lets a job of its group go."""
    groups = int(100_000 * share)
    queue.limit(TOPIC, group_concurrency=1)
    _push(queue, 2 * groups, partial(_grouped, groups))
    held = _take_all(queue, groups)

    def look() -> None:
        for _ in range(BATCH):
            if queue.pop_many(TOPIC, count=1, wait=0):
                raise BenchError("a job of a group that has its one job in hand")

    def let_go() -> None:
        queue.finish_many(held[:BATCH])
        _take_all(queue, BATCH)

    return {
        **_beside(server, f"{groups:,} groups at their limit: pops that find nothing", look),
        **_beside(server, f"{groups:,} groups at their limit: {BATCH:,} ends", let_go),
    }


SCENES: Final = (
    _many_topics,
    _stalled_store,
    _expired_reservations,
    _expired_jobs,
    _bulk_verbs,
    _counted_topics,
    _large_bodies,
    _groups,
    _held_groups,
)

MEASURES: Final = (
    Measure(
        "cliffs",
        "what many topics, TTRs, bulk verbs, groups and a stall do to others' jobs: five minutes",
        cliffs,
        repeated=False,
        by_default=False,
    ),
)
