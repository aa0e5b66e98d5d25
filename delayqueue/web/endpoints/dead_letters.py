"""Why jobs are buried, over all topics."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Annotated, Final, NamedTuple

from pydantic import Field

from delayqueue.answers.answer import LEFT_OUT
from delayqueue.answers.topics import DeadLetterGroup, DeadLetters, Note
from delayqueue.domain.access import EVERYWHERE
from delayqueue.errors import BadValue, Invalid
from delayqueue.store.listings import MOST_LETTERS, DeadLetter
from delayqueue.tasks import by_turns
from delayqueue.web.api import Api
from delayqueue.web.endpoint import ADMINS, VIEWERS, Large, endpoint
from delayqueue.web.fields import Bounds, DueTime, SomeSeconds, Validate, ms, optional
from delayqueue.web.http import HttpRequest
from delayqueue.web.requests import AnyTopicRequest, Request

GROUP: Final = DeadLetterGroup(
    reason="HTTP 503",
    count=2,
    first=1795215237.354,
    last=1795217037.354,
    topics={"order": 2},
    ids=["1001"],
    counts=LEFT_OUT,
    note=LEFT_OUT,
)
MAX_STEPS: Final = 100  # there can be thousands of groups
MAX_NOTE_CHARS: Final = 500
MAX_REASON_CHARS: Final = 200
TRACEBACK: Final = "Traceback ("  # Python's; its last line names the exception
# ids: words of hexadecimal digits, if a number is among them, and numbers of four digits or more. Not 503, not "30 s".
# A look ahead for that number would take quadratic time, and a worker writes the message.
VARYING: Final = re.compile(
    r"(?<![0-9a-z])(?:0x)?[0-9a-f]{8}[0-9a-f-]*(?![0-9a-z])|[0-9]{4,}", re.IGNORECASE
)
DIGIT: Final = re.compile("[0-9]")
IdCount = Annotated[
    int, Bounds(1, MOST_LETTERS), Field(description="The most ids per group; 1 by default.")
]


class Steps(NamedTuple):
    """Consecutive steps of time in ms."""

    start_ms: int
    step_ms: int
    steps: int

    def counts(self, times_ms: Iterable[int]) -> list[int]:
        """How many of these times are in each step."""
        found = [0] * self.steps
        for time_ms in times_ms:
            if 0 <= (number := (time_ms - self.start_ms) // self.step_ms) < self.steps:
                found[number] += 1
        return found


def at_most(chars: int) -> Callable[[str], str]:
    """The check of a text's length."""

    def check(text: str) -> str:
        if len(text) > chars:
            raise BadValue(f"最多{chars}字", f"at most {chars} characters")
        return text

    return check


class BuriedRequest(AnyTopicRequest):
    """Which dead letters: of one topic or of all, with one reason or with any."""

    reason: str | None = optional("Only the group of this reason.")
    ids: IdCount | None = None
    start: DueTime | None = optional(
        "Unix seconds: count, per group, the burials of each step from then on."
    )
    step: SomeSeconds | None = optional("Length of a step in seconds.")
    steps: Annotated[int, Bounds(1, MAX_STEPS)] | None = optional("How many steps.")
    cursor: str | None = optional("The cursor that the previous page returned.")

    def chart(self) -> Steps | None:
        """The steps whose burials are counted. Raises Invalid if only a part of them is given."""
        given = (self.start, self.step, self.steps)
        if None in given:
            if any(each is not None for each in given):
                raise Invalid.of(
                    "start、step 和 steps 须一起给出", "give start, step and steps together"
                )
            return None
        return Steps(ms(self.start or 0), ms(self.step or 0), self.steps or 0)


class NoteRequest(Request):
    """What is said about the dead letters of a reason."""

    reason: Annotated[str, Validate(at_most(MAX_REASON_CHARS))] = Field(
        description="The reason, as /buried answers it."
    )
    text: Annotated[str, Validate(str.strip), Validate(at_most(MAX_NOTE_CHARS))] | None = optional(
        f"At most {MAX_NOTE_CHARS} characters; null or empty removes the note."
    )

    without_topic = ()  # the handler refuses whoever may not reach all topics


@endpoint("/buried", VIEWERS, asks={"topic": "order"}, answers=DeadLetters([GROUP], ""))
async def buried(api: Api, asked: BuriedRequest) -> Large[DeadLetters]:
    """Group dead letters by the reason of their last failure."""
    steps = asked.chart()
    topics = await api.jobs.census.names() if asked.topic is None else [asked.topic]
    what = ("buried", asked.topic, asked.reason)
    reason = cache(reason_of)  # many dead letters have the same message
    letters, cursor = await api.jobs.listings.dead_letters(
        topics,
        what,
        asked.cursor or "",
        lambda letter: asked.reason is None or reason(letter.message) == asked.reason,
    )
    by_reason: dict[str, list[DeadLetter]] = {}
    async for letter in by_turns(letters):
        by_reason.setdefault(reason(letter.message), []).append(letter)
    # a note is about the dead letters of all topics
    said = await api.queue.notes.all() if api.scope is EVERYWHERE else {}
    groups = [
        _group(each, found, said.get(each), steps, asked.ids or 1)
        for each, found in by_reason.items()
    ]
    return Large(DeadLetters(sorted(groups, key=lambda group: -group.count), cursor))


@endpoint("/note", ADMINS, asks={"reason": "HTTP 503", "text": "being fixed, JIRA-7"})
async def note(api: Api, asked: NoteRequest, request: HttpRequest) -> None:
    """Write a note on the dead letters of a reason, for everyone who looks at them.

    The note ends with the last of the dead letters that were there when it was written, or after 30 days.
    """
    api.scope.check(None)
    if asked.text:
        await api.queue.notes.put(asked.reason, asked.text, api.guard.name_of(request))
    else:
        await api.queue.notes.remove(asked.reason)


def _group(
    reason: str, letters: Sequence[DeadLetter], note: Note | None, steps: Steps | None, ids: int
) -> DeadLetterGroup:
    """A group. A note that is older than all its dead letters is left out."""
    times_ms = [letter.buried_ms for letter in letters]
    first = min(times_ms) / 1000
    return DeadLetterGroup(
        reason=reason,
        count=len(letters),
        first=first,
        last=max(times_ms) / 1000,
        topics=Counter(letter.topic for letter in letters),
        ids=[letter.id for letter in letters[:ids]],
        counts=steps.counts(times_ms) if steps else LEFT_OUT,
        note=note if note and note.at >= first else LEFT_OUT,
    )


def reason_of(message: str) -> str:
    """The line of a message that says what went wrong, with # instead of ids and numbers; "" = no reason."""
    lines = [line for line in map(str.strip, message.splitlines()) if line]
    if not lines:
        return ""
    said = lines[-1] if lines[0].startswith(TRACEBACK) else lines[0]
    return VARYING.sub(_without_id, said)[:MAX_REASON_CHARS]


def _without_id(found: re.Match[str]) -> str:
    """# for an id; a word of hexadecimal letters only, such as "facade", stays."""
    return "#" if DIGIT.search(found[0]) else found[0]
