"""A client that sends random requests to any server, now and then without waiting for the answer."""

import asyncio
import random
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from delayqueue.domain.receipt import receipt_for
from delayqueue.errors import Code
from faults.attack.life import Span, Told
from faults.attack.shadow import About, Shadow
from tests.api_client import Api, Envelope, Json

TOPICS: Final = ("a", "b", "c")
LIMITED: Final = "limited"
MOST_RESERVED: Final = 8  # of the limited topic
TICKS: Final = "ticks"  # what schedules push
TAGS: Final = ("x", "y", "z")
SCHEDULES: Final = ("s0", "s1")
MADE_UP: Final = "0123456789ab-1"
LONGEST_POLL_S: Final = 0.3
ABANDONED: Final = 0.02  # of the requests
SOON_MS: Final = (0, 0, 0, 50, 300, 1000, 2500)
RETRIES_MS: Final = (None, None, (100,), (0, 300), (200, 0, 400))
STATES: Final = ("delayed", "ready", "reserved", "buried")


@dataclass
class Crowd:
    """What all attackers of a run share."""

    apis: Sequence[Api]
    shadow: Shadow
    counts: Counter[str] = field(default_factory=Counter)  # requests by verb
    abandoned: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)  # answers that must not occur
    heard: set[tuple[str, str]] = field(default_factory=set)  # ids and receipts
    receipts: defaultdict[str, deque[str]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=4))
    )
    pushes: int = 0
    ticks: set[str] = field(default_factory=set)  # occurrences of schedules that came
    # topic -> which operation, and until when for sure
    pauses: dict[str, tuple[int, int]] = field(default_factory=dict)
    changes: Counter[str] = field(default_factory=Counter)  # of pauses, by topic
    changing: Counter[str] = field(default_factory=Counter)  # requests under way

    @property
    def ids(self) -> list[str]:
        """The ids of the jobs that all of them work on."""
        return list(self.shadow)

    def sure_pause(self, topic: str) -> tuple[int, int] | None:
        """The pause that the topic is in for sure."""
        pause = self.pauses.get(topic)
        return pause if pause and now_ms() < pause[1] else None


class RandomClient:
    """Sends requests, and records in the shadow what it sent and received."""

    def __init__(self, crowd: Crowd, rng: random.Random) -> None:
        self.crowd = crowd
        self.rng = rng

    async def send(self, verb: str, path: str, payload: Json) -> Envelope | None:
        """The answer; None if the client did not wait for it."""
        call = self.rng.choice(self.crowd.apis).call(path, payload)
        try:
            if self.rng.random() > ABANDONED:
                answer = await call
            else:
                async with asyncio.timeout(self.rng.uniform(0, 0.02)):
                    answer = await call
        except TimeoutError:
            self.crowd.abandoned[verb] += 1
            return None
        except (aiohttp.ClientError, OSError) as error:
            self.crowd.wrong.append(f"{path} {payload}: {error!r}")
            return None
        if answer.code in {Code.INVALID, Code.UNAVAILABLE}:
            self.crowd.wrong.append(f"{path} {payload}: {answer.code} {answer.message}")
        return answer

    async def send_recorded(
        self,
        verb: str,
        request: tuple[str, Json],
        asked: Mapping[str, Mapping[str, Any]],
        read: Callable[[Envelope, str], Told],
    ) -> Envelope | None:
        """Send a request for these ids and record it; `read` returns what the answer says about one."""
        ticket, since_ms = self.crowd.shadow.began(), now_ms()
        answer = await self.send(verb, *request)
        about: dict[str, About] = {
            job_id: (what, None if answer is None else read(answer, job_id))
            for job_id, what in asked.items()
        }
        self.crowd.shadow.heard(ticket, verb, since_ms, now_ms(), about)
        return answer

    def id(self) -> str:
        return self.rng.choice(self.crowd.ids)

    def some(self) -> list[str]:
        return self.rng.sample(self.crowd.ids, self.rng.choice([1, 1, 2, 5, 12]))

    def nonce(self, job_id: str) -> str:
        """The receipt of the last known reservation, of an older one, of none, or "" = not sent."""
        known = self.crowd.receipts[job_id]
        kind = self.rng.choice(["right", "right", "right", "old", "made up", ""])
        if kind == "right" and known:
            return known[-1]
        if kind == "old" and known:
            return self.rng.choice(known)
        return "" if kind == "" else MADE_UP

    async def all(self, verb: str, request: tuple[str, Json], asked: Json) -> None:
        """A verb that may affect any job."""
        await self.send_recorded(
            verb, request, dict.fromkeys(self.crowd.ids, asked), lambda *_: Told()
        )

    async def sure(self, path: str, payload: Json) -> None:
        """Send a request, and wait for the answer."""
        (await self.rng.choice(self.crowd.apis).call(path, payload)).ok()


def now_ms() -> int:
    """The clock of this machine, which the store also uses."""
    return time.time_ns() // 1_000_000


def ms(time_s: float) -> int:
    return round(time_s * 1000)


def moment(time_ms: int) -> Span:
    return time_ms, time_ms


def receipt(nonce: str, job_id: str) -> str:
    return receipt_for(nonce, job_id) if nonce else ""


def code_of(answer: Envelope, job_id: str) -> Told:
    if isinstance(answer.data, list):
        return Told(next(each["code"] for each in answer.data if each["id"] == job_id))
    return Told(answer.code)


def time_of(answer: Envelope, name: str) -> Span | None:
    time_s = answer.data.get(name) if answer.data and name else None
    return None if time_s is None else moment(ms(time_s))


def seen(job: Json | None) -> Told:
    """What /get and /list say about a job."""
    if job is None:
        return Told()
    seen = (job["topic"], job["body"], job["state"])
    if job["state"] not in STATES:
        return Told(seen=seen)
    return Told(time=moment(ms(job["due"])), seen=(*seen, job["attempt"]))
