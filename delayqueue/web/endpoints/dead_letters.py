"""Why jobs are buried, over all topics."""

from collections.abc import AsyncIterator
from typing import Annotated, Final

from pydantic import Field

from delayqueue.domain.reason import reason_of
from delayqueue.store.dead_letters import MOST, DeadLetter
from delayqueue.tasks import by_turns
from delayqueue.web.api import Api
from delayqueue.web.endpoint import VIEWERS, Large, endpoint
from delayqueue.web.fields import Between
from delayqueue.web.requests import AnyTopicRequest
from delayqueue.web.responses import Buried, DeadLetterGroup

GROUP: Final = DeadLetterGroup(
    reason="HTTP 503",
    count=2,
    first=1795215237.354,
    last=1795217037.354,
    topics={"order": 2},
    ids=["1001"],
)
IdCount = Annotated[
    int, Between(1, MOST), Field(description="The most ids per group; 1 by default.")
]


class BuriedRequest(AnyTopicRequest):
    """Which dead letters: of one topic or of all, with one reason or with any."""

    reason: str | None = Field(None, description="Only this group.")
    ids: IdCount | None = None
    cursor: str | None = Field(None, description="The cursor that the previous page returned.")


@endpoint(
    "/buried",
    VIEWERS,
    asks={"topic": "order"},
    answers=Buried(groups=[GROUP], cursor=""),
)
async def buried(api: Api, asked: BuriedRequest) -> Large[Buried]:
    """Group dead letters by the reason of their last failure."""
    topics = await api.queue.topics.names(
        lambda topic: asked.topic in {None, topic} and api.scope.allows(topic)
    )
    what = ("buried", asked.topic, asked.reason)
    letters, cursor = await api.queue.dead_letters.page(topics, what, asked.cursor or "")
    groups: dict[str, DeadLetterGroup] = {}
    async for letter, reason in _with_reasons(letters):
        if asked.reason in {None, reason}:
            _add(groups, letter, reason, asked.ids or 1)
    ordered = sorted(groups.values(), key=lambda group: -group["count"])
    return Large({"groups": ordered, "cursor": cursor})


async def _with_reasons(letters: list[DeadLetter]) -> AsyncIterator[tuple[DeadLetter, str]]:
    known: dict[str, str] = {}  # many have the same message
    async for letter in by_turns(letters):
        if letter.message not in known:
            known[letter.message] = reason_of(letter.message)
        yield letter, known[letter.message]


def _add(groups: dict[str, DeadLetterGroup], letter: DeadLetter, reason: str, ids: int) -> None:
    at = letter.buried_ms / 1000
    group = groups.setdefault(
        reason, DeadLetterGroup(reason=reason, count=0, first=at, last=at, topics={}, ids=[])
    )
    group["count"] += 1
    group["first"], group["last"] = min(group["first"], at), max(group["last"], at)
    group["topics"][letter.topic] = group["topics"].get(letter.topic, 0) + 1
    if len(group["ids"]) < ids:
        group["ids"].append(letter.id)
