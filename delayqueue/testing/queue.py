"""A queue in memory, whose clock the test turns."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from delayqueue.client.aio import AsyncClient
from delayqueue.client.blocking import Client
from delayqueue.client.jobs import ReservedJob, seconds
from delayqueue.domain.job import State
from delayqueue.errors import Code, JobExists, NoSuchJob, WrongState
from delayqueue.testing.handling import verdict_on
from delayqueue.worker.policy import Policy
from delayqueue.worker.verdict import Buried, Released

if TYPE_CHECKING:
    from collections.abc import Callable

    from delayqueue.client.calls import Call
    from delayqueue.client.jobs import Seconds
    from delayqueue.worker import Verdict, Worker

T = TypeVar("T")

MOST_RUNS: Final = 10_000  # in one advance()


class Ran(NamedTuple):
    """A job that its handlers were called with, and the outcome."""

    job: ReservedJob
    verdict: Verdict


@dataclass(slots=True)
class _Held:
    request: dict[str, Any]  # as pushed
    due_s: float
    number: int  # the first of equal due times goes first
    attempt: int = 0
    failures: int = 0
    state: State = State.DELAYED
    message: str = ""

    @property
    def own_delays_s(self) -> tuple[float, ...] | None:
        retry = self.request.get("retry")
        return None if retry is None else Policy(retry).delays_s()


class Queue(Client):
    """Replaces a Client in tests: jobs wait in memory until the test turns the clock; then workers handle them.

    It supports push, get, kick, reschedule, delete and cancel. `asynchronous` is the same queue as an AsyncClient.
    """

    def __init__(self, *workers: Worker) -> None:
        super().__init__("http://queue.test", token="")
        self.now_s: float = time.time()
        self.asynchronous: AsyncClient = _Asynchronous(self)
        self._workers = list(workers)
        self._jobs: dict[str, _Held] = {}
        self._pushed = 0

    def add(self, worker: Worker) -> None:
        """Give the worker the jobs of its topics."""
        self._workers.append(worker)

    def advance(self, length: Seconds = 0, *, context: Any = ...) -> list[Ran]:
        """Turn the clock forward. Jobs that fall due meanwhile are handled, each at its time; failed ones again.

        `context` replaces what the workers' lifespans yield. Raises RuntimeError if jobs keep coming without end.
        """
        return asyncio.run(self.aadvance(length, context=context))

    async def aadvance(self, length: Seconds = 0, *, context: Any = ...) -> list[Ran]:
        """Like advance(), for asynchronous tests."""
        until_s = self.now_s + seconds(length)
        ran: list[Ran] = []
        while due := self._first(until_s):
            if len(ran) == MOST_RUNS:
                raise RuntimeError(f"{MOST_RUNS} handlers have run: do jobs push each other?")
            worker, held = due
            self.now_s = max(self.now_s, held.due_s)
            ran.append(await self._handle(worker, held, context))
        self.now_s = until_s
        return ran

    def _send(self, call: Call[T]) -> T:
        """Carry out a call, at the time of the clock."""
        verbs: dict[str, Callable[[Any], Any]] = {
            "/push": self._push,
            "/get": self._get,
            "/kick": self._kick,
            "/reschedule": self._reschedule,
            "/delete": self._delete,
            "/cancel": self._cancel,
        }
        if call.path not in verbs or ("ids" in call.request and call.path != "/delete"):
            raise NotImplementedError(f"{call.path}: not in memory; test with a real server")
        return call.read(verbs[call.path](call.request))

    def _first(self, until_s: float) -> tuple[Worker, _Held] | None:
        waiting = [
            (held.due_s, held.number, worker, held)
            for held in self._jobs.values()
            for worker in self._workers
            if held.state is State.DELAYED
            and held.due_s <= until_s
            and held.request["topic"] in worker.handlers.topics
        ]
        return min(waiting, key=lambda one: one[:2])[2:] if waiting else None

    async def _handle(self, worker: Worker, held: _Held, context: Any) -> Ran:
        held.attempt += 1
        held.state = State.RESERVED
        topic, job_id, body = (held.request[name] for name in ("topic", "id", "body"))
        trace = held.request.get("traceparent", "")
        job = ReservedJob(topic, job_id, body, held.attempt, "a-receipt", held.due_s, trace)
        given = worker.handlers.context() if context is ... else nullcontext(context)
        async with given as shared:
            verdict = await verdict_on(worker, job, shared)
        if self._jobs.get(job_id) is held:  # otherwise it was pushed again, or deleted, meanwhile
            verdict = self._settle(worker, held, verdict)
        return Ran(job, verdict)

    def _settle(self, worker: Worker, held: _Held, verdict: Verdict) -> Verdict:
        held.message = verdict.message
        if isinstance(verdict, Released):
            held.failures += 1
            delay_s = self._delay_s(worker, held, verdict.delay_s)
            if delay_s is not None:
                held.state, held.due_s = State.DELAYED, self.now_s + delay_s
                return verdict
            verdict = Buried(verdict.message, verdict.traceback)
        if isinstance(verdict, Buried):
            held.state = State.BURIED
        elif held.request.get("retain"):
            held.state = State.FINISHED
        else:
            del self._jobs[held.request["id"]]
        return verdict

    def _delay_s(self, worker: Worker, held: _Held, wanted_s: float | None) -> float | None:
        """How long a failed job waits; None = it is buried."""
        own_s, policy = held.own_delays_s, worker.handlers.policy_of(held.request["topic"])
        delays_s = policy.delays_s() if own_s is None else own_s
        is_over = held.failures > len(delays_s)
        if own_s is not None and wanted_s is not None:
            return wanted_s
        if is_over and (own_s is not None or policy.max_attempts is not None):
            return None
        return delays_s[min(held.failures, len(delays_s)) - 1] if wanted_s is None else wanted_s

    def _push(self, request: Any) -> Any:
        if isinstance(request, list):
            return [self._outcome(one) for one in request]
        existing = self._jobs.get(request["id"])
        if existing and request.get("if_exists") == "fail":
            raise JobExists
        if existing and request.get("if_exists") == "keep":
            return None
        self._pushed += 1
        due_s = request.get("due", self.now_s + request.get("delay", 0))
        self._jobs[request["id"]] = _Held(request, due_s, self._pushed)
        return None

    def _outcome(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            self._push(request)
        except JobExists as error:
            return {"id": request["id"], "code": error.code, "message": str(error)}
        return {"id": request["id"], "code": Code.OK, "message": ""}

    def _get(self, request: dict[str, Any]) -> dict[str, Any] | None:
        held = self._jobs.get(request["id"])
        if held is None:
            return None
        told = {name: held.request[name] for name in ("topic", "id", "body", "ttr")}
        unknown: dict[str, Any] = {
            "created": 0.0,
            "started": None,
            "ended": None,
            "attempts": [],
            "results": [],
        }
        is_due = held.state is State.DELAYED and held.due_s <= self.now_s
        return {
            **(told | unknown),
            "state": State.READY if is_due else held.state,
            "tags": held.request.get("tags", []),
            "attempt": held.attempt,
            "message": held.message,
            "due": held.due_s,
        }

    def _kick(self, request: dict[str, Any]) -> None:
        held = self._known(request)
        if held.state not in {State.BURIED, State.DELAYED}:
            raise WrongState
        held.state, held.due_s, held.failures = State.DELAYED, self.now_s, 0
        if "body" in request:
            held.request = {**held.request, "body": request["body"]}

    def _reschedule(self, request: dict[str, Any]) -> dict[str, float]:
        held = self._known(request)
        if held.state not in {State.BURIED, State.DELAYED}:
            raise WrongState
        held.state = State.DELAYED
        held.due_s = request.get("due", self.now_s + request.get("delay", 0))
        return {"due": held.due_s}

    def _delete(self, request: dict[str, Any]) -> Any:
        if "ids" in request:
            codes = [
                Code.OK if self._jobs.pop(each, None) else Code.NO_SUCH_JOB
                for each in request["ids"]
            ]
            return [
                {"id": each, "code": code} for each, code in zip(request["ids"], codes, strict=True)
            ]
        self._known(request)
        del self._jobs[request["id"]]
        return None

    def _cancel(self, request: dict[str, Any]) -> dict[str, int]:
        ids = [
            job_id
            for job_id, held in self._jobs.items()
            if request["tag"] in held.request.get("tags", ())
            and request.get("topic") in {None, held.request["topic"]}
            and held.state is not State.FINISHED
        ]
        for job_id in ids:
            del self._jobs[job_id]
        return {"count": len(ids)}

    def _known(self, request: dict[str, Any]) -> _Held:
        held = self._jobs.get(request["id"])
        if held is None:
            raise NoSuchJob
        return held


class _Asynchronous(AsyncClient):
    """The same queue as an AsyncClient."""

    def __init__(self, queue: Queue) -> None:
        super().__init__("http://queue.test", token="")
        self._queue = queue

    async def send(self, call: Call[T]) -> T:
        """Like Queue.send()."""
        return self._queue.send(call)
