"""Task: a function that runs later, in a worker: pushing it is a call with its arguments, which type checkers know."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    TypeAlias,
    TypedDict,
    TypeVar,
    TypeVarTuple,
    Unpack,
)

from delayqueue.client.jobs import DEFAULT_TTR_S, OnConflict
from delayqueue.client.pushes import Job, new_job
from delayqueue.client.several import Several, several
from delayqueue.domain.push_rules import NEW_ID
from delayqueue.worker.current import tags_of_current_job
from delayqueue.worker.parameters import Parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from delayqueue.answers.jobs import Outcome
    from delayqueue.client.times import Moment, Seconds
    from delayqueue.worker.worker import Worker

# of a task: returns the group for arguments of a push, None = none
GroupOf: TypeAlias = "Callable[..., str | int | None]"
R = TypeVar("R")
Ts = TypeVarTuple("Ts")


class Options(TypedDict, total=False):
    """How a job of a task is pushed: the fields of push() but for those that the task knows."""

    id: str
    delay: Seconds
    due: Moment
    ttr: Seconds
    tags: Several[str]
    if_exists: OnConflict
    max_wait: Seconds
    retain: Seconds
    expire: Seconds
    priority: int
    group: str


OPTIONS: Final = frozenset(Options.__annotations__)


class Task(Generic[R, Unpack[Ts]]):
    """What `@worker.task("topic")` makes of a function. Calling it runs the function, here and now.

    push() and its like take the function's arguments, and the job's options by name. Type checkers know the arguments
    in their order, all of them; those with a default may be left out, and any of them named unless an option has the
    name. The body is a JSON object with a member for each argument that was given, so other languages can push and pop
    the same jobs.
    """

    def __init__(
        self,
        worker: Worker,
        topic: str,
        function: Callable[[Unpack[Ts]], R],
        ttr: Seconds = DEFAULT_TTR_S,
        also: Sequence[str] = (),
        group: GroupOf | None = None,
    ) -> None:
        """Raises ValueError if the function has arguments that no JSON object can hold, as *args, or `group` others."""
        self.topic: str = topic
        self.topics: tuple[str, ...] = (topic, *also)  # with its former names
        self.function: Callable[[Unpack[Ts]], R] = function
        self.__doc__ = function.__doc__
        self.__wrapped__: Callable[..., R] = function
        self._worker = worker
        self._ttr = ttr
        self.parameters: Parameters = Parameters(function)
        self._pick_group = None if group is None else self.parameters.picker(group)

    def __repr__(self) -> str:
        return f"<task {self.topic}: {self.parameters.name}>"

    def __call__(self, *args: Unpack[Ts]) -> R:
        """Run the function itself."""
        return self.function(*args)

    def job(self, *args: Unpack[Ts], **options: Unpack[Options]) -> Job:
        """The job that push() pushes; push_many() of a client takes jobs of several tasks."""
        return Job(topic=self.topic, **self._given(args, options))

    def _given(self, args: Sequence[object], named: Mapping[str, Any]) -> dict[str, Any]:
        options = {name: value for name, value in named.items() if name in OPTIONS}
        body, given = self.parameters.body_of(
            args, {name: value for name, value in named.items() if name not in OPTIONS}
        )
        if "group" not in options:
            options["group"] = self.group_of(given)
        tags = (*several("tags", options.get("tags", ())), *self._kept_tags())
        return {"body": body, "ttr": self._ttr, **options, "tags": tuple(dict.fromkeys(tags))}

    def group_of(self, given: dict[str, Any]) -> str | None:
        """The group of a job with these arguments, None = none; a customer's number is a name, too.

        Raises TypeError if it is neither.
        """
        found = None if self._pick_group is None else self._pick_group(given)
        if found is None or isinstance(found, str):
            return found
        if isinstance(found, int) and not isinstance(found, bool):
            return str(found)
        kind = type(found).__name__
        raise TypeError(f"{self.topic}: the group is a {kind}, must be a text, an integer or None")

    def _kept_tags(self) -> Sequence[str]:
        """The tags of the job whose handler runs, if the worker keeps them."""
        return tags_of_current_job() if self._worker.keep_tags else ()

    def push(self, *args: Unpack[Ts], **options: Unpack[Options]) -> str:
        """Run the function later, in a worker. Returns the job's id. In a running loop, await push_async()."""
        return self._worker.client.push(self.topic, **self._given(args, options))

    async def push_async(self, *args: Unpack[Ts], **options: Unpack[Options]) -> str:
        """Run the function later, in a worker, for asyncio. Returns the job's id."""
        return await self._worker.async_client.push(self.topic, **self._given(args, options))

    def push_many(
        self, rows: Several[tuple[Unpack[Ts]]], **options: Unpack[Options]
    ) -> list[Outcome]:
        """Run the function later for each row of arguments, up to 1000 of them. Returns an outcome per row.

        Raises ValueError if several rows are given one `id`.
        """
        return self._worker.client.push_many(self._jobs(rows, options))

    async def push_many_async(
        self, rows: Several[tuple[Unpack[Ts]]], **options: Unpack[Options]
    ) -> list[Outcome]:
        """Run the function later for each row of arguments, for asyncio. Returns an outcome per row."""
        return await self._worker.async_client.push_many(self._jobs(rows, options))

    def _jobs(self, rows: Several[tuple[Unpack[Ts]]], options: Options) -> list[Job]:
        given: list[Sequence[object]] = [several("row", row) for row in several("rows", rows)]
        job_id = options.get("id")
        if job_id not in {None, NEW_ID} and len(given) > 1:
            raise ValueError(
                f"{self.topic}: {len(given)} jobs cannot have one id, {job_id}; "
                "make each with job(…, id=…), and push them with push_many of a client"
            )
        if "tags" in options:
            options["tags"] = several("tags", options["tags"])  # each job reads them
        return [self._new_job(row, options) for row in given]

    def _new_job(self, args: Sequence[object], options: Options) -> Job:
        """A job that is pushed once, so that a retry may keep it."""
        given = self._given(args, options)
        made = new_job(*map(given.get, ("id", "if_exists", "max_wait", "group")))
        return Job(topic=self.topic, **given | made)

    def cancel(self, tag: str) -> int:
        """End the jobs of this task that have the tag, also those of its former names. Returns how many."""
        return sum(self._worker.client.cancel(tag, topic=topic) for topic in self.topics)

    async def cancel_async(self, tag: str) -> int:
        """End the jobs of this task that have the tag, also those of its former names. Returns how many."""
        client = self._worker.async_client
        return sum([await client.cancel(tag, topic=topic) for topic in self.topics])
