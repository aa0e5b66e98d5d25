"""Jobs for a webhook, while subscribers come and go; the calls are judged by what was pushed and deleted."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from faults.attack.attackers import PauseGate
from faults.attack.random_client import now_ms
from tests.api_client import Api, Json
from tests.delivery.receiver import Answer, Call, Receiver

TOPIC: Final = "hook"
NAMES: Final = ("w0", "w1")
ANSWERS: Final = 2000  # not all of them a success
PAUSE_S: Final = 0.05


@dataclass
class _Pushed:
    """What is known about a job."""

    due_ms: int  # the earliest
    acknowledged: bool = False
    ended: bool = False  # a client has deleted it
    gone: bool = False  # at the last hold
    calls: int = 0


class WebhookLoad:
    """Pushes jobs, each with an id of its own, and judges the calls."""

    def __init__(self, apis: Sequence[Api], receiver: Receiver, gate: PauseGate, seed: int) -> None:
        self.calls = 0
        self._apis = apis
        self._receiver = receiver
        self._gate = gate
        self._random = random.Random(f"{seed}/hooks")
        self._jobs: dict[str, _Pushed] = {}
        self._numbers = count()
        for name in NAMES:
            statuses = self._random.choices([200, 204, 500, 302], [8, 2, 2, 1], k=ANSWERS)
            receiver.says(name, *map(Answer, statuses), Answer())

    async def subscribe(self, name: str) -> None:
        """Subscribe the receiver."""
        payload: Json = {
            "name": name,
            "topic": TOPIC,
            "url": self._receiver.url(name),
            "timeout": 5,
        }
        payload |= {"retry": {"delays": [0.1, 0, 0.3]}, "if_exists": "replace"}
        (await self._api().call("/subscribe", payload)).ok()

    async def unsubscribe(self, name: str) -> None:
        """Unsubscribe it."""
        await self._api().call("/unsubscribe", {"name": name})

    async def run(self) -> None:
        """Push, delete, subscribe and unsubscribe until cancelled."""
        while True:
            async with self._gate.passed():
                await self._push()
                if self._random.random() < 0.1:
                    await self._delete()
                if self._random.random() < 0.02:
                    name = self._random.choice(NAMES)
                    await self._random.choice([self.subscribe, self.unsubscribe])(name)
            await asyncio.sleep(PAUSE_S)

    async def _push(self) -> None:
        job_id, delay_ms = f"hook/{next(self._numbers)}", self._random.choice([0, 0, 100, 1000])
        self._jobs[job_id] = _Pushed(now_ms() + delay_ms)
        job = {"topic": TOPIC, "id": job_id, "delay": delay_ms / 1000, "ttr": 5, "body": job_id}
        (await self._api().push(**job)).ok()
        self._jobs[job_id].acknowledged = True

    async def _delete(self) -> None:
        job_id = self._random.choice(list(self._jobs))
        self._jobs[job_id].ended = True
        (await self._api().delete(job_id)).ok()

    def judge(self, there: set[str]) -> list[str]:
        """What is wrong with the calls since the last time; `there` are the ids of all jobs that have not ended.

        A call can be on its way while its job ends, so only jobs that were gone at the last check must not be called.
        """
        calls, self._receiver.calls = self._receiver.calls, []
        self.calls += len(calls)
        found = [wrong for call in calls if (wrong := self._wrong_with(call))]
        for job_id, job in self._jobs.items():
            gone = job.acknowledged and job_id not in there
            if gone and not job.gone and not (job.ended or job.calls):
                found.append(f"{job_id} is gone and nobody was called")
            job.gone = gone
        return found

    def _wrong_with(self, call: Call) -> str:
        job = self._jobs.get(call.body.decode())
        if job is None:
            return f"{call} with a job that nobody pushed"
        job.calls += 1
        if call.at_s * 1000 < job.due_ms:
            return f"{call} came {job.due_ms - call.at_s * 1000:.0f} ms early"
        return f"{call} came after the end of its job" if job.gone else ""

    def _api(self) -> Api:
        return self._random.choice(self._apis)
