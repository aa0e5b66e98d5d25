"""Why jobs are buried, over all topics."""

from typing import Annotated, Final

from pydantic import Field

from delayqueue.domain.reason import reason_of
from delayqueue.store.dead_letters import MOST, DeadLetter
from delayqueue.tasks import by_turns
from delayqueue.web.api import Api
from delayqueue.web.endpoint import VIEWERS, Large, endpoint
from delayqueue.web.fields import Bounds
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
    int, Bounds(1, MOST), Field(description="The most ids per group; 1 by default.")
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
    topics = await api.jobs.topics.names(
        lambda topic: asked.topic in {None, topic} and api.scope.allows(topic)
    )
    what = ("buried", asked.topic, asked.reason)
    reasons = _Reasons()
    letters, cursor = await api.jobs.dead_letters.page(
        topics,
        what,
        asked.cursor or "",
        lambda letter: asked.reason is None or reasons[letter.message] == asked.reason,
    )
    groups: dict[str, DeadLetterGroup] = {}
    async for letter in by_turns(letters):
        _add(groups, letter, reasons[letter.message], asked.ids or 1)
    ordered = sorted(groups.values(), key=lambda group: -group["count"])
    return Large({"groups": ordered, "cursor": cursor})


class _Reasons(dict[str, str]):
    """The reasons by message; many dead letters have the same one."""

    def __missing__(self, message: str) -> str:
        self[message] = reason = reason_of(message)
        return reason


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
