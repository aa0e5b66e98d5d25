"""What every handler uses: the queue, the limits, reading a request, answering it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from delayqueue.access import EVERYWHERE, Scope
from delayqueue.engine.queue import DelayQueue, raise_for
from delayqueue.errors import (
    DONE,
    OF_CODE,
    Code,
    Compressed,
    QueueError,
    Text,
)
from delayqueue.metrics import REQUEST_WARNINGS
from delayqueue.peers import Peers
from delayqueue.web import doubts
from delayqueue.web.auth import Guard
from delayqueue.web.envelope import Speaker
from delayqueue.web.http import HttpRequest, HttpResponse
from delayqueue.web.ids import IdMaker
from delayqueue.web.parse import Model, in_lower_case, parse
from delayqueue.web.requests import IdRequest, Request

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # Windows' editors and .NET put it before UTF-8


@dataclass(frozen=True, slots=True)
class Api:
    """The handlers' surroundings, one for a server process."""

    queue: DelayQueue
    speaker: Speaker
    max_body_bytes: int
    longest_wait_s: float
    peers: Peers
    metrics_topics: int
    settings: Mapping[str, str]  # to look at
    guard: Guard
    check_url: Callable[[str], str]  # raises BadValue for one that webhooks may not call
    strict: bool  # refuse what clients can hardly mean
    new_id: IdMaker = field(default_factory=IdMaker)
    scope: Scope = EVERYWHERE  # the topics that the client may reach

    def confined(self, scope: Scope) -> Self:
        """The same for a client that may reach some topics only."""
        return replace(self, queue=self.queue.confined(scope), scope=scope)

    async def read(self, request: HttpRequest, model: type[Model]) -> Model:
        """The request's body as `model`. Invalid, TooLarge or SlowRequest where it is not that, Forbidden where the
        client may not ask for it.
        """
        asked = self.heed(request, parse(model, await self.read_raw(request)))
        self.check_reach(asked)
        return asked

    def check_reach(self, asked: Request) -> None:
        """Forbidden where the client may not reach what is asked for."""
        if self.scope is not EVERYWHERE:
            self.scope.check(asked.reach())

    def heed(self, request: HttpRequest, asked: Model) -> Model:
        """What was asked, as it is meant; the answer tells of what the client can hardly mean.

        Invalid where `strict` refuses that.
        """
        if not asked.is_doubtful:
            return asked
        if asked.any_case:
            asked = in_lower_case(asked)
        if asked.unknown:
            doubts.note(request, doubts.UNKNOWN_FIELDS, asked.unknown)
            self.queue.metrics.count(REQUEST_WARNINGS, "unknown_field")
            if self.strict:
                doubts.refuse_unknown(asked)
        if asked.long_delay_s:
            doubts.note(request, doubts.LONG_DELAY, [f"{asked.long_delay_s:.0f}"])
            self.queue.metrics.count(REQUEST_WARNINGS, "long_delay")
            if self.strict:
                doubts.refuse_long_delay(asked.long_delay_s)
        return asked

    async def read_raw(self, request: HttpRequest) -> bytes:
        """The request's body without a byte order mark, whatever its Content-Type says.

        TooLarge or SlowRequest where it does not come.
        """
        if request.headers.get("content-encoding", "identity") != "identity":
            raise Compressed
        raw, request.body = request.body, None  # a poll that waits has no need of it any more
        if raw is None:
            raw = await request.read()
        return raw.removeprefix(BYTE_ORDER_MARK)

    def ok(self, request: HttpRequest, data: object = None, message: Text = DONE) -> HttpResponse:
        """The answer to a request that went well."""
        return self.speaker.ok(request, data, message)

    def ok_each(
        self, request: HttpRequest, asked: IdRequest, ids: Sequence[str], codes: Sequence[int]
    ) -> HttpResponse:
        """One id: nothing, or the error that its code stands for. `ids`: id and code of each."""
        if not asked.many:
            raise_for(codes[0])
            return self.ok(request)
        return self.ok(request, results(ids, codes))

    def outcome(
        self, request: HttpRequest, job_id: object, result: int | QueueError, done: Text
    ) -> dict[str, object]:
        """What became of one job of a batch."""
        if isinstance(result, QueueError):
            code, message = result.code, result.text
        else:
            code, message = Code(result), OF_CODE[Code(result)].default if result else done
        return {"id": job_id, "code": int(code), "message": self.speaker.say(request, message)}


def results(ids: Sequence[str], codes: Sequence[int]) -> list[dict[str, object]]:
    """Id and code of each."""
    return [{"id": job_id, "code": code} for job_id, code in zip(ids, codes, strict=True)]
