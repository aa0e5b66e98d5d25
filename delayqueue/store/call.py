"""A call of a script in a bucket: the words that are sent, and what is made of the answer."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import hiredis

from delayqueue.domain import damage
from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.metrics import REPAIRS, SCRIPT_SECONDS, Histogram, Metrics
from delayqueue.store.replies import Reply, read_reply
from delayqueue.store.scripts import ScriptHead
from delayqueue.store.servers.connection import Wait
from delayqueue.store.servers.durability import Durability, Requirement
from delayqueue.store.servers.functions import Functions
from delayqueue.store.servers.server import Server

if TYPE_CHECKING:
    from asyncio import Future

    from delayqueue.store.bucket import Bucket


def _repaired_by_tick(metrics: Metrics, results: Sequence[Any]) -> None:
    if results[3]:
        metrics.count(REPAIRS, "set_aside", by=results[3])


def _repaired_by_sweep(metrics: Metrics, results: Sequence[Any]) -> None:
    if results[1]:
        metrics.count(REPAIRS, "ghosts", by=results[1])


def _repaired_by_inspect(metrics: Metrics, results: Sequence[Any]) -> None:
    findings = results[1]
    mended = zip(findings[::4], findings[3::4], strict=True)
    kinds = Counter(kind.decode() for kind, is_mended in mended if is_mended == b"1")
    kinds.pop(damage.LOST, None)  # an event of its job
    for kind, number in kinds.items():
        metrics.count(REPAIRS, kind, by=number)


# by script: what counts the damage that a call with these results has mended
REPAIRS_OF: Final[Mapping[str, Callable[[Metrics, Sequence[Any]], None]]] = {
    "tick": _repaired_by_tick,
    "sweep": _repaired_by_sweep,
    "inspect": _repaired_by_inspect,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A script as it is called: what its head and the settings say of all calls."""

    head: ScriptHead
    words: tuple[str, str]  # with which a call of it as a function begins
    wait: Wait | None
    requirements: Sequence[Requirement]
    seconds: Histogram  # that calls take
    count_repairs: Callable[[Metrics, Sequence[Any]], None] | None


def functions_by_name(
    functions: Functions, durability: Durability, metrics: Metrics
) -> Mapping[str, Function]:
    """All scripts."""
    return {
        name: Function(
            head=head,
            words=functions.function(name),
            wait=durability.wait(head),
            requirements=durability.requirements(head),
            seconds=metrics.histogram(SCRIPT_SECONDS, name),
            count_repairs=REPAIRS_OF.get(name),
        )
        for name, head in functions.heads.items()
    }


class ScriptCall:
    """A call, which may be sent several times (bucket.py says when).

    `end` is called once, with the reply, or the error: Unavailable, UnicodeEncodeError if no bytes stand for an
    argument, TypeError if it is neither text, bytes nor a number.
    """

    __slots__ = (
        "_args",
        "_end",
        "_keys",
        "asked_s",
        "bucket",
        "function",
        "generation",
        "made_s",
        "packed",
        "repeats",
        "server",
        "until_s",
        "waiter",
        "words",
    )

    def __init__(  # everything that is known of a call
        self,
        function: Function,
        bucket: "Bucket",
        args: Sequence[Any],
        scope: Scope,
        end: Callable[[Reply | Exception], None],
        waiter: "Future[Any] | None" = None,
    ) -> None:
        """Made now, it may be done for `answer_s` of the store under its present layout (`begin` in _call.lua).

        If `waiter` is done before the call is sent, it is not sent.
        """
        self.function: Final = function
        self.bucket: Final = bucket
        self.generation: Final = bucket.buckets.layout.generation
        self.made_s: Final = monotonic()
        self.until_s: Final = self.made_s + bucket.answer_s
        self.repeats = 0
        self.server: Server | None = None  # of the last attempt
        self.waiter = waiter
        self._args = args
        self._end = end
        self._keys = bucket.names
        if scope is not EVERYWHERE:
            entries = json.dumps(scope.entries, ensure_ascii=False)
            self._keys = [*self._keys, bucket.keys.tag + entries]

    def attempt(self, server: Server) -> None:
        """Send it to this server."""
        function = self.function
        self.server = server
        self.asked_s = now_s = monotonic()
        if server.refused_until_s <= now_s:
            self.words = function.words
        else:
            self.words = self.bucket.functions.script(function.head.name)
        until_ms = server.clock.at_ms(self.until_s)
        control = f"{self.generation} {self.bucket.sender} {1 if function.wait else 0}"
        try:
            self.packed: bytes = hiredis.pack_command(
                (*self.words, len(self._keys), *self._keys, *self._args, until_ms, control)
            )
        except (UnicodeEncodeError, TypeError) as error:
            self.fail(error)
        else:
            server.send(self, function.wait)

    def answered(self, answer: Any) -> None:
        """Take the script's answer, which tells more than its results."""
        function, bucket = self.function, self.bucket
        metrics = bucket.metrics
        try:
            reply = read_reply(answer)
            if self.server is not None:
                self.server.clock.heard(reply.now_ms, self.asked_s)
            if bucket.ailment is not None:
                bucket.answered(writes=function.head.writes)
            function.seconds.observe(monotonic() - self.made_s)
            for event in reply.events:
                metrics.count_event(*event)
            if function.count_repairs:
                function.count_repairs(metrics, reply.results)
            if bucket.failpoint:
                bucket.failpoint.reach(f"{function.head.name}.after")
        except Exception as error:  # an answer that cannot be read
            self._end(error)
        else:
            self._end(reply)

    def failed(self, error: Exception) -> None:
        """Take an attempt's error: the call may be attempted again."""
        self.bucket.recover(self, error)

    def fail(self, error: Exception) -> None:
        """It is over, with this error."""
        self._end(error)
