"""Random requests for many jobs: by topic, by tag, by time; and for settings of topics and schedules."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from faults.attack.life import FOR_EVER_MS, Told
from faults.attack.random_client import (
    LIMITED,
    MOST_RESERVED,
    SCHEDULES,
    STATES,
    TAGS,
    TICKS,
    TOPICS,
    RandomClient,
    moment,
    ms,
    now_ms,
    seen,
)
from faults.attack.shadow import About
from tests.api_client import Envelope, Json

PURGED: Final = (*STATES, "ended")


class ManyVerbs(RandomClient):
    """Verbs on topics, tags, ranges and schedules."""

    async def _cancel(self) -> None:
        tag, topic = self.rng.choice(TAGS), self.rng.choice(["", *TOPICS])
        payload = {"tag": tag} | ({"topic": topic} if topic else {})
        await self.all("cancel", ("/cancel", payload), {"tag": tag, "topic": topic})

    async def _purge(self) -> None:
        topic, state = self.rng.choice(TOPICS), self.rng.choice(["", *PURGED])
        payload = {"topic": topic} | ({"state": state} if state else {})
        ticket, since_ms = self.crowd.shadow.began(), now_ms()
        answer = await self.send("purge", "/purge", payload)
        told = None if answer is None else Told()
        # each can hit a job, even one that is pushed meanwhile
        for each in (state,) if state else PURGED:
            about: About = {"topic": topic, "state": each, "misses": not state}, told
            every = dict.fromkeys(self.crowd.ids, about)
            self.crowd.shadow.heard(ticket, "purge", since_ms, now_ms(), every)

    async def _take(self) -> None:
        topic, middle_s = self.rng.choice(TOPICS), time.time()
        payload: Json = {"topic": topic, "count": self.rng.choice([1, 5, 50])}
        if self.rng.random() < 0.5:
            payload["start"] = round(middle_s - self.rng.choice([0.5, 5]), 3)
        payload["end"] = round(middle_s + self.rng.choice([0, 0.5, 2]), 3)
        ticket, since_ms = self.crowd.shadow.began(), now_ms()
        answer = await self.send("take", "/take", payload)
        # an id comes twice if its job was pushed again meanwhile
        about: list[dict[str, About]] = [{}]
        if answer is None:
            about = [{job_id: ({"topic": topic}, None) for job_id in self.crowd.ids}]
        for job in answer.data if answer else ():
            if not payload.get("start", 0) <= job["due"] <= payload["end"]:
                self.crowd.wrong.append(f"/take {payload}: {job} is not in the range")
            seen = job["topic"], job["body"]
            if job["id"] in about[-1]:
                about.append({})
            about[-1][job["id"]] = {"topic": topic}, Told(time=moment(ms(job["due"])), seen=seen)
        for each in about:
            self.crowd.shadow.heard(ticket, "take", since_ms, now_ms(), each)

    # --- reading

    async def _get(self) -> None:
        many = self.rng.random() < 0.4
        ids = self.some() if many else [self.id()]
        payload: Json = {"ids": ids} if many else {"id": ids[0]}

        def read(answer: Envelope, job_id: str) -> Told:
            return seen(answer.data[ids.index(job_id)] if many else answer.data)

        await self.send_recorded("look", ("/get", payload), {each: {} for each in ids}, read)

    async def _list(self) -> None:
        payload: Json = {"limit": self.rng.choice([1, 5, 100])}
        payload |= self.rng.choice(
            [{"tag": self.rng.choice(TAGS)}, {"topic": self.rng.choice(TOPICS)}]
        )
        if self.rng.random() < 0.5:
            payload["state"] = self.rng.choice([*STATES, "finished", "cancelled", "expired"])
        for _ in range(self.rng.choice([1, 3, 20])):
            ticket, since_ms = self.crowd.shadow.began(), now_ms()
            answer = await self.send("list", "/list", payload)
            if answer is None or answer.data is None:
                return
            about: dict[str, About] = {
                job["id"]: ({}, seen(job))
                for job in answer.data["jobs"]
                if job["id"] in self.crowd.shadow
            }
            self.crowd.shadow.heard(ticket, "look", since_ms, now_ms(), about)
            if not answer.data["cursor"]:
                return
            payload["cursor"] = answer.data["cursor"]

    async def _show(self) -> None:
        now_s = int(time.time())
        path, payload = self.rng.choice(
            [
                ("/topics", {}),
                ("/stats", {}),
                ("/whoami", {}),
                ("/forecast", {"start": now_s, "end": now_s + 5, "step": 0.5}),
                ("/schedules", {}),
                ("/subscribers", {}),
            ]
        )
        await self.send("show", path, payload)

    @contextmanager
    def _changing(self, topic: str, until_ms: int | None) -> Iterator[None]:
        """It is unknown meanwhile whether the topic is paused; afterwards it is, if `until_ms` says so."""
        crowd = self.crowd
        crowd.changes[topic] += 1
        change, is_alone = crowd.changes[topic], not crowd.changing[topic]
        crowd.changing[topic] += 1
        crowd.pauses.pop(topic, None)
        try:
            yield
        finally:
            crowd.changing[topic] -= 1
        # another one at the same time may have reached some buckets first and some last
        if until_ms is not None and is_alone and change == crowd.changes[topic]:
            crowd.pauses[topic] = change, until_ms

    async def _pause(self) -> None:
        topic, hold_ms = self.rng.choice(TOPICS), self.rng.choice([100, 400, 1000])
        payload: Json = {"topic": topic}
        if self.rng.random() < 0.7:
            payload["seconds"] = hold_ms / 1000
        until_ms = now_ms() + hold_ms if "seconds" in payload else FOR_EVER_MS
        with self._changing(topic, until_ms):
            await self.sure("/pause", payload)

    async def _resume(self) -> None:
        topic = self.rng.choice(TOPICS)
        with self._changing(topic, None):
            await self.sure("/resume", {"topic": topic})

    async def _limit(self) -> None:
        rate = self.rng.choice([None, 50, 200])
        concurrency = self.rng.randint(4, MOST_RESERVED)
        await self.sure("/limit", {"topic": LIMITED, "rate": rate, "concurrency": concurrency})

    async def _schedule(self) -> None:
        name = self.rng.choice(SCHEDULES)
        if self.rng.random() < 0.3:
            await self.send("schedule", "/unschedule", {"name": name})
            return
        payload = {"name": name, "topic": TICKS, "every": self.rng.choice([1, 2]), "ttr": 5}
        await self.send("schedule", "/schedule", payload | {"if_exists": "replace"})
