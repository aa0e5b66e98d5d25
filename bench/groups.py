"""What groups are for: how long the jobs of small customers wait beside a large one's, with groups and without."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import mean
from typing import Final, NamedTuple

from bench.measure import Figure, Figures, Measure, Scale, new_topic, per_second
from bench.processes import BenchError
from bench.target import Server
from delayqueue.client import Client, Job
from delayqueue.tasks import batched

PACE: Final = 500  # jobs a second that the worker handles
TAKEN: Final = 5  # jobs at a time
BATCH: Final = 500  # jobs of a push
LIGHT_JOBS: Final = 10  # of each of the light ones
LIGHT: Final = 9
SPREAD: Final = 10  # groups of the tenant that spreads
TRICKLE_S: Final = 0.05  # between two jobs that trickle
WAIT_S: Final = 1
ANSWER_S: Final = 60.0


class Pushed(NamedTuple):
    """A job as a scene pushes it: whose it is, and the group that says so."""

    tenant: str
    group: str


class Waits:
    """A worker of a steady pace, and how long the jobs of each tenant waited for it, in seconds."""

    def __init__(self, server: Server, are_grouped: bool) -> None:
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self._url = server.url
        self._are_grouped = are_grouped
        self._topic = new_topic()
        self._pushed = 0
        self._is_complete = False

    def push(self, queue: Client, jobs: list[Pushed]) -> None:
        """Push them: they are ready at once."""
        self._pushed += len(jobs)
        for some in batched(jobs, BATCH):
            written = [
                Job(
                    topic=self._topic,
                    body=f"{each.tenant} {time.time()}",
                    group=each.group if self._are_grouped else None,
                )
                for each in some
            ]
            if refused := [each for each in queue.push_many(written) if each.code]:
                raise BenchError(f"a push was refused: {refused[0].message}")

    @contextmanager
    def worked(self) -> Iterator[None]:
        """Work beside the block, and after it until all jobs are done."""
        worker = threading.Thread(target=self._work, daemon=True)
        worker.start()
        try:
            yield
        finally:
            self._is_complete = True
            worker.join(2 * self._pushed / PACE + ANSWER_S)
        if (handled := sum(map(len, self.seconds.values()))) != self._pushed:
            raise BenchError(f"{self._pushed} jobs were pushed, and {handled} handled")

    def _work(self) -> None:
        handled, began_at = 0, time.monotonic()
        with Client(self._url, timeout=ANSWER_S) as queue:
            while not self._is_complete or handled < self._pushed:
                jobs = queue.pop_many(self._topic, count=TAKEN, wait=WAIT_S)
                now = time.time()
                for job in jobs:
                    tenant, pushed_at = job.body.split()
                    self.seconds[tenant].append(now - float(pushed_at))
                if jobs:
                    queue.finish_many(jobs)
                handled += len(jobs)
                time.sleep(max(0.0, began_at + handled / PACE - time.monotonic()))


Scene = Callable[[Waits, Client, int], None]


def _beside_light_ones(waits: Waits, queue: Client, jobs: int) -> None:
    waits.push(queue, [Pushed("heavy", "heavy")] * jobs)
    waits.push(queue, [Pushed("light", f"light-{number}") for number in range(LIGHT)] * LIGHT_JOBS)
    with waits.worked():
        pass


def _beside_a_trickle(waits: Waits, queue: Client, jobs: int) -> None:
    waits.push(queue, [Pushed("heavy", "heavy")] * jobs)
    with waits.worked():
        for _ in range(int(jobs / PACE / TRICKLE_S / 2)):
            waits.push(queue, [Pushed("light", "light")])
            time.sleep(TRICKLE_S)


def _spread(waits: Waits, queue: Client, jobs: int) -> None:
    """Turns are a group's: who takes ten names gets ten turns."""
    waits.push(queue, [Pushed("heavy", f"heavy-{number % SPREAD}") for number in range(jobs)])
    waits.push(queue, [Pushed("light", "light")] * LIGHT_JOBS)
    with waits.worked():
        pass


SCENES: Final[dict[str, Scene]] = {
    "nine light ones": _beside_light_ones,
    "a trickle": _beside_a_trickle,
    "one beside ten groups of a tenant": _spread,
}


def groups(server: Server, scale: Scale) -> Figures:
    """Each scene without groups and with them; and one group alone, as fast as it goes."""
    figures: dict[str, Figure] = {}
    with Client(server.url, timeout=ANSWER_S) as queue:
        for name, scene in SCENES.items():
            found = []
            for are_grouped in (False, True):
                waits = Waits(server, are_grouped)
                scene(waits, queue, scale.grouped_jobs)
                found.append(mean(waits.seconds["light"]))
            without, within = found
            figures[f"{name}: mean wait without groups"] = Figure(1000 * without, "ms")
            figures[f"{name}: with groups"] = Figure(1000 * within, "ms")
            figures[f"{name}: share"] = Figure(100 * within / without, "%")
        for name, group in (("no group", None), ("one group alone", "alone")):
            figures[name] = per_second(_drained(queue, scale.grouped_jobs, group))
    return figures


def _drained(queue: Client, jobs: int, group: str | None) -> float:
    """Jobs a second that are taken and finished, with nobody else at work."""
    topic = new_topic()
    for at in range(0, jobs, BATCH):
        some = min(BATCH, jobs - at)
        queue.push_many([Job(topic=topic, body="x", group=group) for _ in range(some)])
    began_at, handled = time.monotonic(), 0
    while handled < jobs:
        taken = queue.pop_many(topic, count=100, wait=WAIT_S)
        if not taken:
            raise BenchError(f"{jobs - handled} jobs are missing")
        queue.finish_many(taken)
        handled += len(taken)
    return jobs / (time.monotonic() - began_at)


MEASURES: Final = (
    Measure(
        "groups",
        "how long a small customer's jobs wait beside a large one's: two minutes",
        groups,
        repeated=False,
        by_default=False,
    ),
)
