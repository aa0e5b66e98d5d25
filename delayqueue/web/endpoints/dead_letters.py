"""Why jobs are buried, over all topics."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Final

from pydantic import Field

from delayqueue.answers.topics import Buried, DeadLetterGroup
from delayqueue.domain.reason import reason_of
from delayqueue.store.dead_letters import MOST, DeadLetter
from delayqueue.tasks import by_turns
from delayqueue.web.api import Api
from delayqueue.web.endpoint import VIEWERS, Large, endpoint
from delayqueue.web.fields import Bounds, optional
from delayqueue.web.requests import AnyTopicRequest

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

    reason: str | None = optional("Only the group of this reason.")
    ids: IdCount | None = None
    cursor: str | None = optional("The cursor that the previous page returned.")


@endpoint(
    "/buried",
    VIEWERS,
    asks={"topic": "order"},
    answers=Buried([GROUP], ""),
)
async def buried(api: Api, asked: BuriedRequest) -> Large[Buried]:
    """Group dead letters by the reason of their last failure."""
    if asked.topic is None:
        topics = await api.jobs.census.names(api.scope.allows)
    else:
        topics = list(filter(api.scope.allows, [asked.topic]))
    what = ("buried", asked.topic, asked.reason)
    reason = cache(reason_of)  # many dead letters have the same message
    letters, cursor = await api.jobs.dead_letters.page(
        topics,
        what,
        asked.cursor or "",
        lambda letter: asked.reason is None or reason(letter.message) == asked.reason,
    )
    by_reason: dict[str, list[DeadLetter]] = {}
    async for letter in by_turns(letters):
        by_reason.setdefault(reason(letter.message), []).append(letter)
    groups = [_group(each, found, asked.ids or 1) for each, found in by_reason.items()]
    return Large(Buried(sorted(groups, key=lambda group: -group.count), cursor))


def _group(reason: str, letters: Sequence[DeadLetter], most_ids: int) -> DeadLetterGroup:
    times_ms = [letter.buried_ms for letter in letters]
    return DeadLetterGroup(
        reason=reason,
        count=len(letters),
        first=min(times_ms) / 1000,
        last=max(times_ms) / 1000,
        topics=Counter(letter.topic for letter in letters),
        ids=[letter.id for letter in letters[:most_ids]],
    )
