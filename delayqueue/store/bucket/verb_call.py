"""A call of a verb in a bucket: the words that are sent, and what is made of the answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

import hiredis

from delayqueue.config.failpoint import Failpoint
from delayqueue.metrics import Histogram, Metrics
from delayqueue.store.bucket.outages import Outages
from delayqueue.store.bucket.replies import read_reply
from delayqueue.store.scripts import ScriptHead
from delayqueue.store.servers.durability import Requirement
from delayqueue.store.servers.functions import Functions
from delayqueue.store.servers.pipeline import StoreCommand, Wait
from delayqueue.store.servers.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What all calls of a verb share: how it is called, as its head and the settings say, and who makes it."""

    verb: ScriptHead
    functions: Functions
    function: tuple[str, str]  # the words that call it as a function
    sender: str  # names this process, which does not hear its own announcements
    wait: Wait | None
    requirements: Sequence[Requirement]
    recover: Callable[["VerbCall", Exception], None]  # sees to a call whose attempt failed
    metrics: Metrics
    seconds: Histogram  # that calls take
    count_repairs: Callable[[Metrics, Sequence[Any]], None] | None
    outages: Outages
    failpoint: Failpoint | None


class VerbCall(StoreCommand):
    """The future has the script's Reply, or what `read` makes of it.

    Its exception is Unavailable or UnicodeEncodeError.
    """

    __slots__ = (
        "_args",
        "_keys",
        "_read",
        "asked_s",
        "bucket",
        "generation",
        "repeats",
        "server",
        "terms",
        "until_s",
        "words",
    )

    def __init__(  # noqa: PLR0913  # everything that is known of a call
        self,
        terms: Terms,
        bucket: int,
        keys: Sequence[str],
        args: Sequence[Any],
        read: Callable[[Any], Any] | None,
        *,
        generation: int,
        answer_s: float,
    ) -> None:
        """Made now, it may be done for `answer_s` under this generation of the layout: `begin` in _call.lua."""
        super().__init__()
        self.terms: Final = terms
        self.bucket: Final = bucket
        self.generation: Final = generation
        self.made_s = monotonic()
        self.until_s = self.made_s + answer_s
        self.repeats = 0
        self.server: Server | None = None  # of the last attempt
        self._keys = keys
        self._args = args
        self._read = read

    @property
    def tag(self) -> str:
        """The bucket's."""
        return self._keys[0]

    def attempt(self, server: Server) -> None:
        """Send it to this server."""
        terms = self.terms
        self.server = server
        self.asked_s = now_s = monotonic()
        if server.refused_until_s <= now_s:
            self.words = terms.function
        else:
            self.words = terms.functions.script(terms.verb.name)
        until_ms = server.clock.at_ms(self.until_s)
        control = f"{self.generation} {terms.sender}{' w' if terms.wait else ''}"
        try:
            self.packed = hiredis.pack_command(
                (*self.words, len(self._keys), *self._keys, *self._args, until_ms, control)
            )
        except UnicodeEncodeError as error:
            self.set_exception(error)
        else:
            server.pipeline(terms.wait).send(self)

    def settle(self, answer: Any) -> None:
        """Take an attempt's error, or the script's answer, which tells more than its results."""
        terms = self.terms
        if isinstance(answer, Exception):
            terms.recover(self, answer)
            return
        try:
            reply, metrics = read_reply(answer), terms.metrics
            if self.server is not None:
                self.server.clock.heard(reply.now_ms, self.asked_s)
            if terms.outages.ailments:
                terms.outages.answered(self.bucket, writes=terms.verb.writes)
            terms.seconds.observe(monotonic() - self.made_s)
            for event in reply.events:
                metrics.count_event(*event)
            if terms.count_repairs:
                terms.count_repairs(metrics, reply.results)
            if terms.failpoint:
                terms.failpoint.reach(f"{terms.verb.name}.after")
            self.set_result(self._read(reply) if self._read else reply)
        except Exception as error:  # an answer that cannot be read
            self.set_exception(error)
