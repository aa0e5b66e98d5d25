"""Random requests that name jobs."""

import time
from collections.abc import Mapping, Sequence

from delayqueue.domain.job import MAX_PRIORITY, USUAL_PRIORITY
from delayqueue.domain.receipt import nonce_of
from faults.attack.life import Spec, Told
from faults.attack.random_client import (
    LIMITED,
    LONGEST_POLL_S,
    RETRIES_MS,
    SOON_MS,
    TAGS,
    TICKS,
    TOPICS,
    RandomClient,
    code_of,
    moment,
    ms,
    now_ms,
    receipt,
    time_of,
)
from faults.attack.shadow import About
from tests.api_client import Envelope, Json


class JobVerbs(RandomClient):
    """Verbs on one job, or on several by their ids."""

    async def _push(self) -> None:
        many = self.rng.random() < 0.4
        ids = self.some() if many else [self.id()]
        asked, wire = {}, []
        for job_id in ids:
            asked[job_id], job = self._job(job_id)
            wire.append(job)

        def read(answer: Envelope, job_id: str) -> Told:
            return Told(answer.data[ids.index(job_id)]["code"] if many else answer.code)

        await self.send_recorded("push", ("/push", wire if many else wire[0]), asked, read)  # type: ignore[arg-type]

    def _job(self, job_id: str) -> tuple[Json, Json]:
        self.crowd.pushes += 1
        spec = Spec(
            topic=self.rng.choice([*TOPICS, *TOPICS, LIMITED]),
            body=f"{job_id} {self.crowd.pushes}",
            ttr_ms=self.rng.choice([1000, 1000, 2000]),
            tags=tuple(sorted(self.rng.sample(TAGS, self.rng.choice([0, 0, 1, 2])))),
            retry_ms=self.rng.choice(RETRIES_MS),
            retain_ms=self.rng.choice([0, 0, 500, 1500]),
            priority=self.rng.choice([USUAL_PRIORITY, USUAL_PRIORITY, 0, MAX_PRIORITY]),
        )
        delay_ms, expire_ms = self.rng.choice(SOON_MS), self.rng.choice([0, 0, 0, 300, 1000])
        due = moment(now_ms() + delay_ms) if self.rng.random() < 0.2 else None
        if_exists = self.rng.choice(["replace", "replace", "keep", "fail"])
        wire: Json = {
            "topic": spec.topic,
            "id": job_id,
            "body": spec.body,
            "ttr": spec.ttr_ms // 1000,
            "tags": spec.tags,
            "if_exists": if_exists,
        }
        if spec.priority != USUAL_PRIORITY:
            wire["priority"] = spec.priority
        wire |= {"due": due[0] / 1000} if due else {"delay": delay_ms / 1000}
        if spec.retain_ms:
            wire["retain"] = spec.retain_ms / 1000
        if expire_ms:
            wire["expire"] = expire_ms / 1000
        if spec.retry_ms is not None:
            wire["retry"] = {"delays": [ms / 1000 for ms in spec.retry_ms]}
        asked = {
            "spec": spec,
            "delay_ms": delay_ms,
            "due": due,
            "expire_ms": expire_ms,
            "if_exists": if_exists,
        }
        return asked, wire

    async def _pop(self) -> None:
        topics = self.rng.sample([*TOPICS, LIMITED, TICKS], self.rng.choice([1, 2, 3]))
        payload: Json = {
            "topic": ",".join(topics),
            "timeout": self.rng.choice([0, 0.01, LONGEST_POLL_S]),
        }
        if self.rng.random() < 0.5:
            payload["count"] = self.rng.choice([1, 3, 20])
        pauses = {topic: self.crowd.pauses.get(topic) for topic in topics}
        ticket, since_ms = self.crowd.shadow.began(), now_ms()
        answer = await self.send("pop", "/pop", payload)
        if answer is None:
            lost: About = {"topics": topics}, None
            self.crowd.shadow.heard(
                ticket, "lost_pop", since_ms, 0, dict.fromkeys(self.crowd.ids, lost)
            )
            return
        jobs = answer.data if isinstance(answer.data, list) else [answer.data] * bool(answer.data)
        self._check_popped(jobs, topics, pauses)
        about = {job["id"]: self._popped(job) for job in jobs if job["id"] in self.crowd.shadow}
        self.crowd.shadow.heard(ticket, "pop", since_ms, now_ms(), about)
        for job in jobs:
            if job["topic"] == TICKS:
                await self._tick(job)
            elif self.rng.random() < 0.5:
                await self._use(job["id"])

    def _check_popped(
        self, jobs: Sequence[Json], topics: Sequence[str], pauses: Mapping[str, object]
    ) -> None:
        if len({job["id"] for job in jobs}) < len(jobs):
            self.crowd.wrong.append(f"a job came twice in an answer: {jobs}")
        for job in jobs:
            topic = job["topic"]
            if topic not in topics:
                self.crowd.wrong.append(f"{topics} were asked for, came {job}")
            elif pauses[topic] and pauses[topic] == self.crowd.sure_pause(topic):
                self.crowd.wrong.append(f"{topic} is paused, came {job}")

    def _popped(self, job: Json) -> About:
        nonce = nonce_of(job["receipt"], job["id"])
        self.crowd.receipts[job["id"]].append(nonce)
        self.crowd.heard.add((job["id"], nonce))
        seen = (job["topic"], job["body"], job["attempt"])
        return {"receipt": nonce}, Told(time=moment(ms(job["due"])), seen=seen)

    async def _use(self, job_id: str) -> None:
        """Do what a worker does with a job that it has received."""
        verb = self.rng.choice(["finish", "finish", "finish", "release", "touch", "bury"])
        self.crowd.counts[verb] += 1
        await getattr(self, f"_{verb}")(job_id)

    async def _tick(self, job: Json) -> None:
        """An occurrence of a schedule comes once, and again only if it was not finished in time."""
        if job["attempt"] == 1:
            if job["id"] in self.crowd.ticks:
                self.crowd.wrong.append(f"{job['id']} came a second time, as attempt 1")
            self.crowd.ticks.add(job["id"])
        if job["due"] > time.time() + 0.002:
            self.crowd.wrong.append(f"{job} came early")
        await self.send("finish", "/finish", {"id": job["id"], "receipt": job["receipt"]})

    async def _finish(self, job_id: str = "") -> None:
        await self._end("finish", "finished", job_id)

    async def _delete(self) -> None:
        await self._end("delete", "cancelled", "")

    async def _end(self, verb: str, how: str, job_id: str) -> None:
        many = not job_id and self.rng.random() < 0.4
        ids = self.some() if many else [job_id or self.id()]
        nonces = [self.nonce(each) for each in ids]
        receipts = [receipt(nonce, each) for nonce, each in zip(nonces, ids, strict=True)]
        payload: Json = {"id": ids[0]} | ({"receipt": receipts[0]} if receipts[0] else {})
        if many:
            payload = {"ids": ids, "receipts": receipts}
        asked = {
            each: {"how": how, "receipt": nonce} for each, nonce in zip(ids, nonces, strict=True)
        }
        await self.send_recorded(verb, (f"/{verb}", payload), asked, code_of)

    async def _held(self, verb: str, job_id: str, asked: Json, wire: Json, time_field: str) -> None:
        """A verb on one job that is reserved, or should be."""
        job_id = job_id or self.id()
        nonce = self.nonce(job_id)
        wire = {"id": job_id} | ({"receipt": receipt(nonce, job_id)} if nonce else {}) | wire

        def read(answer: Envelope, _: str) -> Told:
            return Told(answer.code, time_of(answer, time_field))

        asked = {job_id: asked | {"receipt": nonce}}
        await self.send_recorded(verb, (f"/{verb}", wire), asked, read)

    async def _release(self, job_id: str = "") -> None:
        delay_ms = self.rng.choice([None, None, 0, 200])
        fallback_ms = self.rng.choice([None, None, 100])
        wire: Json = {"message": "why"}
        wire |= {} if delay_ms is None else {"delay": delay_ms / 1000}
        wire |= {} if fallback_ms is None else {"fallback": fallback_ms / 1000}
        asked = {"delay_ms": delay_ms, "fallback_ms": fallback_ms}
        await self._held("release", job_id, asked, wire, "due")

    async def _touch(self, job_id: str = "") -> None:
        ttr_ms = self.rng.choice([None, 1000, 2000])
        wire = {} if ttr_ms is None else {"ttr": ttr_ms // 1000}
        await self._held("touch", job_id, {"ttr_ms": ttr_ms}, wire, "deadline")

    async def _bury(self, job_id: str = "") -> None:
        wire = self.rng.choice([{}, {"message": "no"}])
        await self._held("bury", job_id, {}, wire, "")

    async def _kick(self) -> None:
        many = self.rng.random() < 0.4
        ids = self.some() if many else [self.id()]
        payload: Json = {"ids": ids} if many else {"id": ids[0]}

        def read(answer: Envelope, job_id: str) -> Told:
            codes = {each["id"]: each["code"] for each in answer.data["results"]} if many else {}
            return Told(codes.get(job_id, answer.code))

        await self.send_recorded("kick", ("/kick", payload), {each: {} for each in ids}, read)

    async def _kick_some(self) -> None:
        topic = self.rng.choice(TOPICS)
        payload = {"topic": topic, "count": self.rng.choice([1, 5])}
        await self.all("kick_some", ("/kick", payload), {"topic": topic})

    async def _reschedule(self) -> None:
        job_id, delay_ms = self.id(), self.rng.choice(SOON_MS)
        due = moment(now_ms() + delay_ms) if self.rng.random() < 0.5 else None
        wire: Json = {"id": job_id} | (
            {"due": due[0] / 1000} if due else {"delay": delay_ms / 1000}
        )

        def read(answer: Envelope, _: str) -> Told:
            return Told(answer.code, time_of(answer, "due"))

        asked = {job_id: {"due": due, "delay_ms": delay_ms}}
        await self.send_recorded("reschedule", ("/reschedule", wire), asked, read)
