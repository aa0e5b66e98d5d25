"""A queue in memory, whose clock the test turns."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from delayqueue.client.aio import AsyncClient
from delayqueue.client.blocking import Client
from delayqueue.client.jobs import new_id
from delayqueue.client.times import seconds
from delayqueue.domain.job import USUAL_PRIORITY, State
from delayqueue.domain.push_fields import POPPED
from delayqueue.domain.push_rules import NEW_ID
from delayqueue.errors import Code, JobExists, NoSuchJob, QueueError, WrongState, shown
from delayqueue.testing.handling import verdict_on
from delayqueue.testing.rules import asked, check_count, pushed
from delayqueue.worker.executor import Executor
from delayqueue.worker.handled_job import HandledJob
from delayqueue.worker.policy import Policy
from delayqueue.worker.verdict import Buried, Released, with_traceback

if TYPE_CHECKING:
    from collections.abc import Callable

    from delayqueue.answers.jobs import ReservedJob
    from delayqueue.client.api_request import ApiRequest
    from delayqueue.client.times import Seconds
    from delayqueue.domain.schedule import Schedule
    from delayqueue.worker import Verdict, Worker

T = TypeVar("T")

WAITING: Final = {State.DELAYED, State.READY, State.BURIED}
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
    first_s: float  # the first of the pushes that have replaced each other since nobody has had it
    attempt: int = 0
    failures: int = 0
    state: State = State.DELAYED
    message: str = ""
    began_s: float = 0.0  # of its last attempt
    attempts: list[dict[str, Any]] = field(default_factory=list)  # that have failed
    progress: dict[str, Any] | None = None  # of the last attempt
    ended_s: float | None = None  # None = it goes on

    @property
    def is_waiting(self) -> bool:
        """Whether nobody has had it."""
        return self.state is State.DELAYED and self.attempt == 0

    def tell(self, percent: float | None, message: str | None) -> None:
        """Note how far the attempt is."""
        if percent is None and self.progress is not None:
            percent = self.progress["percent"]
        at_s = self.began_s  # the clock stands still while handlers run
        self.progress = {"percent": percent, "message": message or "", "at": at_s}

    @property
    def is_over(self) -> bool:
        """Whether it has ended and its record is kept."""
        return self.ended_s is not None

    def is_kept(self, now_s: float) -> bool:
        """Whether it goes on, or its record is still kept."""
        return self.ended_s is None or now_s < _whole_ms(
            self.ended_s + self.request.get("retain", 0)
        )

    @property
    def own_delays_s(self) -> tuple[float, ...] | None:
        retry = self.request.get("retry")
        return None if retry is None else Policy(retry).delays_s()


class Queue(Client):
    """Replaces a Client in tests: jobs wait in memory until the test turns the clock; then workers handle them.

    It supports push, get, kick, reschedule, delete and cancel, of one job or many, and refuses what a server without
    settings refuses; `expire`, the order by `priority` and the turns of groups have no effect. `asynchronous` is the
    same queue as an AsyncClient. The clock is the queue's own: `turn`, if set, is called with each new unix time, to
    turn another one.
    """

    def __init__(self, *workers: Worker) -> None:
        super().__init__("http://queue.test", token="")
        self.now_s: float = _whole_ms(time.time())
        self.turn: Callable[[float], object] | None = None
        self.asynchronous: AsyncClient = _Asynchronous(self)
        self._workers: list[Worker] = []
        self._executor = Executor()  # whose threads serve one job after the other
        self._jobs: dict[str, _Held] = {}
        self._pushed = 0
        self._timetable: dict[str, tuple[Schedule, int | None]] = {}  # with the next times, in ms
        for worker in workers:
            self.add(worker)

    def add(self, worker: Worker) -> None:
        """Give the worker the jobs of its topics."""
        worker.load()
        self._workers.append(worker)
        for times in worker.times:
            schedule = times.schedule
            self._timetable[schedule.name] = schedule, schedule.after(round(self.now_s * 1000))

    def advance(self, length: Seconds = 0, *, context: Any = ...) -> list[Ran]:
        """Turn the clock forward. Jobs that fall due meanwhile are handled, each at its time; failed ones again.

        `context` replaces what the workers' lifespans yield. Raises RuntimeError if jobs keep coming without end.
        """
        return asyncio.run(self.aadvance(length, context=context))

    async def aadvance(self, length: Seconds = 0, *, context: Any = ...) -> list[Ran]:
        """Turn the clock forward, in asynchronous tests: jobs that fall due meanwhile are handled, each at its time.

        `context` replaces what the workers' lifespans yield. Raises RuntimeError if jobs keep coming without end.
        """
        until_s = _whole_ms(self.now_s + seconds(length))
        ran: list[Ran] = []
        while True:
            occurs_s = self._occurs_s(until_s)
            due = self._first(until_s if occurs_s is None else occurs_s)
            if due is not None:
                if len(ran) == MOST_RUNS:
                    raise RuntimeError(f"{MOST_RUNS} handlers have run: do jobs push each other?")
                worker, held = due
                self._move(held.due_s)
                ran.append(await self._handle(worker, held, context))
            elif occurs_s is not None:
                self._move(occurs_s)
                self._push_occurrences()
            else:
                break
        self._move(until_s)
        return ran

    def _move(self, to_s: float) -> None:
        if to_s > self.now_s:
            self.now_s = to_s
            self._jobs = {id_: held for id_, held in self._jobs.items() if held.is_kept(to_s)}
        if self.turn is not None:
            self.turn(self.now_s)

    def _occurs_s(self, until_s: float) -> float | None:
        """When the next task with times is pushed; None if not until then."""
        times = [at_ms / 1000 for _, at_ms in self._timetable.values() if at_ms is not None]
        return min((at_s for at_s in times if at_s <= until_s), default=None)

    def _push_occurrences(self) -> None:
        for name, (schedule, at_ms) in self._timetable.items():
            if at_ms is not None and at_ms <= round(self.now_s * 1000):
                self._timetable[name] = schedule, schedule.after(at_ms)
                self.push(
                    schedule.topic,
                    schedule.body,
                    id=schedule.job_id(at_ms),
                    due=at_ms / 1000,
                    ttr=schedule.ttr_ms // 1000,
                    group=schedule.group or None,
                )

    def _send(self, request: ApiRequest[T]) -> T:
        """Carry out a request, at the time of the clock."""
        verbs: dict[str, Callable[[Any], Any]] = {
            "/get": self._get,
            "/kick": self._kick,
            "/reschedule": self._reschedule,
            "/delete": self._delete,
            "/cancel": self._cancel,
        }
        if request.path not in {"/push", *verbs}:
            raise NotImplementedError(f"{request.path}: not in memory; test with a real server")
        if request.path == "/push":
            return request.read(self._push(request.json))
        return request.read(verbs[request.path](asked(request.path, request.json)))

    def _first(self, until_s: float) -> tuple[Worker, _Held] | None:
        waiting = [
            (held.due_s, held.number, worker, held)
            for held in self._jobs.values()
            for worker in self._workers
            if held.state is State.DELAYED
            and held.due_s <= until_s
            and held.request["topic"] in worker.handlers.topics
            and "call" not in held.request
        ]
        return min(waiting, key=lambda one: one[:2])[2:] if waiting else None

    async def _handle(self, worker: Worker, held: _Held, context: Any) -> Ran:
        held.attempt += 1
        held.state, held.began_s = State.RESERVED, self.now_s
        topic, job_id, body = (held.request[name] for name in ("topic", "id", "body"))
        told = {name: held.request[name] for name in POPPED if name in held.request}
        told["tags"] = tuple(held.request.get("tags", ()))
        job = HandledJob(topic, job_id, body, held.attempt, "a-receipt", held.due_s, **told)
        held.progress = None
        verdict = await verdict_on(worker, job, context, self._executor, held.tell)
        if self._jobs.get(job_id) is held and not held.is_over:  # not pushed again, nor deleted
            verdict = self._settle(worker, held, verdict)
        return Ran(job, verdict)

    def _settle(self, worker: Worker, held: _Held, verdict: Verdict) -> Verdict:
        held.message = verdict.message
        if isinstance(verdict, (Released, Buried)):
            held.message = with_traceback(verdict.message, verdict.traceback)
            attempt = {"attempt": held.attempt, "started": held.began_s, "ended": self.now_s}
            held.attempts.append(attempt | {"message": held.message})
        if isinstance(verdict, Released):
            held.failures += 1
            delay_s = self._delay_s(worker, held, verdict.delay)
            if delay_s is not None:
                held.state, held.due_s = State.DELAYED, _whole_ms(self.now_s + delay_s)
                return verdict
            verdict = Buried(verdict.message, verdict.traceback)
        if isinstance(verdict, Buried):
            held.state = State.BURIED
        else:
            held.progress = None
            self._end(held, State.FINISHED)
        return verdict

    def _end(self, held: _Held, state: State) -> None:
        held.state, held.ended_s = state, self.now_s
        if not held.is_kept(self.now_s):
            del self._jobs[held.request["id"]]

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
            check_count(request)
            return [self._outcome(one) for one in request]
        return self._add(pushed(request))

    def _add(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Push a job. Returns its id if that is made here."""
        made = None
        if request["id"] == NEW_ID:
            made = {"id": new_id(request.get("group"))}
            request |= made
        existing = self._jobs.get(request["id"])
        if existing and _repeats(request, existing.request):
            return None
        if existing and existing.request["topic"] != request["topic"]:
            text = f"topic {shown(existing.request['topic'])} has a job with this id"
            raise JobExists.of(text, text)
        if existing and request.get("if_exists") == "fail":
            raise JobExists
        if existing and _keeps(request, existing):
            return None
        self._pushed += 1
        due_s = request.get("due", self.now_s + request.get("delay", 0))
        first_s = existing.first_s if existing and existing.is_waiting else self.now_s
        if "max_wait" in request:
            due_s = min(due_s, first_s + request["max_wait"])
        self._jobs[request["id"]] = _Held(request, _whole_ms(due_s), self._pushed, first_s)
        return made

    def _outcome(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            request = pushed(request)
            made = self._add(request)
        except QueueError as error:
            return {"id": request["id"], "code": error.code, "message": str(error)}
        return {"id": request["id"]} | (made or {}) | {"code": Code.OK, "message": "added"}

    def _get(self, request: dict[str, Any]) -> Any:
        if "ids" in request:
            return [self._told(job_id) for job_id in request["ids"]]
        return self._told(request["id"])

    def _told(self, job_id: str) -> dict[str, Any] | None:
        held = self._jobs.get(job_id)
        if held is None:
            return None
        group = {"group": held.request["group"]} if "group" in held.request else {}
        return {
            **{name: held.request[name] for name in ("topic", "id", "body", "ttr")},
            **group,
            "created": 0.0,
            "started": None,
            "ended": held.ended_s,
            "attempts": held.attempts,
            "results": [],
            "state": self._state(held),
            "priority": held.request.get("priority", USUAL_PRIORITY),
            "tags": held.request.get("tags", []),
            "attempt": held.attempt,
            "message": held.message,
            "due": held.due_s,
            **({"progress": held.progress} if held.progress else {}),
        }

    def _kick(self, request: dict[str, Any]) -> Any:
        def kick(held: _Held) -> dict[str, Any]:
            held.state, held.due_s, held.failures = State.DELAYED, self.now_s, 0
            if "body" in request:
                held.request = held.request | {"body": request["body"]}
            return {}

        if request.keys() & {"tag", "topic"}:
            return self._change(request, {State(request.get("state", State.BURIED))}, kick)
        return self._change(request, {State.BURIED, State.DELAYED}, kick)

    def _reschedule(self, request: dict[str, Any]) -> Any:
        def reschedule(held: _Held) -> dict[str, Any]:
            if "priority" in request:
                held.request = held.request | {"priority": request["priority"]}
            if request.keys() & {"delay", "due", "by"}:
                if held.state is State.BURIED:
                    held.failures = 0
                held.state, held.due_s = State.DELAYED, _whole_ms(self._new_due_s(held, request))
            return {"due": held.due_s}

        return self._change(request, WAITING, reschedule)

    def _new_due_s(self, held: _Held, request: dict[str, Any]) -> float:
        if "by" in request:
            due_s = held.due_s + float(request["by"])
            return due_s if due_s > self.now_s else min(self.now_s, held.due_s)
        return float(request.get("due", self.now_s + request.get("delay", 0)))

    def _delete(self, request: dict[str, Any]) -> Any:
        for job_id in request.get("ids", [request.get("id")]):
            held = self._jobs.get(job_id)  # an unknown one has been deleted, as the server says
            if held and not held.is_over:
                self._end(held, State.CANCELLED)
        ended = [{"id": job_id, "code": Code.OK} for job_id in request.get("ids", ())]
        return ended if "ids" in request else None

    def _cancel(self, request: dict[str, Any]) -> Any:
        def cancel(held: _Held) -> dict[str, Any]:
            self._end(held, State.CANCELLED)
            return {}

        return self._change(request, {*WAITING, State.RESERVED}, cancel)

    def _change(
        self, request: dict[str, Any], states: set[State], change: Callable[[_Held], dict[str, Any]]
    ) -> Any:
        """Change one job, each of many, or those of a tag or topic, if they are in one of the states.

        Of many, an error is the code in the job's row.
        """
        if "id" in request:
            return change(self._known(request["id"], states))
        if "ids" not in request:
            chosen = self._chosen(request, states)
            for held in chosen:
                change(held)
            return {"count": len(chosen)}
        rows: list[dict[str, Any]] = []
        for job_id in request["ids"]:
            try:
                rows.append({"id": job_id, "code": Code.OK} | change(self._known(job_id, states)))
            except QueueError as error:
                rows.append({"id": job_id, "code": error.code})
        return {"count": sum(row["code"] == Code.OK for row in rows), "results": rows}

    def _chosen(self, request: dict[str, Any], states: set[State]) -> list[_Held]:
        """The jobs of a tag, of a topic, or of both, that are in these states; at most `count`, the first due."""
        found = [
            held
            for held in self._jobs.values()
            if self._state(held) in states
            and ("tag" not in request or request["tag"] in held.request.get("tags", ()))
            and request.get("topic") in {None, held.request["topic"]}
        ]
        return sorted(found, key=lambda held: held.due_s)[: request.get("count")]

    def _state(self, held: _Held) -> State:
        is_due = held.state is State.DELAYED and held.due_s <= self.now_s
        return State.READY if is_due else held.state

    def _known(self, job_id: str, states: set[State]) -> _Held:
        held = self._jobs.get(job_id)
        if held is None or held.is_over:
            raise NoSuchJob
        if self._state(held) not in states:
            raise WrongState
        return held


def _whole_ms(time_s: float) -> float:
    """The time as the server keeps it: what is added to it adds up."""
    return round(time_s, 3)


def _repeats(request: dict[str, Any], earlier: dict[str, Any]) -> bool:
    """Whether a push is one that has been made already."""
    same = ("topic", "idempotency_key")
    return "idempotency_key" in request and all(request[it] == earlier.get(it) for it in same)


def _keeps(request: dict[str, Any], existing: _Held) -> bool:
    """Whether a push leaves the job of its id as it is. If that has ended, another key means another job."""
    is_new = existing.is_over and "idempotency_key" in request
    return request.get("if_exists") == "keep" and not is_new


class _Asynchronous(AsyncClient):
    """An AsyncClient whose requests go to a Queue in memory."""

    def __init__(self, queue: Queue) -> None:
        super().__init__("http://queue.test", token="")
        self._queue = queue

    async def send(self, request: ApiRequest[T]) -> T:
        """Answer a request from the queue in memory."""
        return self._queue.send(request)
