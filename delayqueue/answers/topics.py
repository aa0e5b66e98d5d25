"""Topics, the jobs that will fall due in them, and their dead letters."""

from dataclasses import field

from delayqueue.answers.answer import answer, omittable


@answer
class Limits:
    """How fast and how many at once a topic's jobs are handed out, and for how many seconds its buried ones are kept.

    null = no limit; for `buried_retain`, the server's setting. `group_concurrency`, `group_order`: of each group, if
    they are set. `buried_to`: the topic to which buried jobs are reported, if they are. `max_jobs`: how many jobs it
    may have, if that is limited; `when_full`: what a push to a full one does, if it is not refused. `declared`: from a
    config file.
    """

    rate: float | None
    burst: int | None
    concurrency: int | None
    buried_retain: float | None = field(default=None, kw_only=True)
    group_concurrency: int | None = omittable(default=None, nullable=True, kw_only=True)
    group_order: bool | None = omittable(default=None, nullable=True, kw_only=True)
    buried_to: str | None = omittable(default=None, nullable=True, kw_only=True)
    max_jobs: int | None = omittable(default=None, nullable=True, kw_only=True)
    when_full: str | None = omittable(default=None, nullable=True, kw_only=True)
    declared: bool


@answer
class TopicRates:
    """Jobs pushed, handed out and finished a second, and attempts that failed, over about the last minute."""

    pushed: float
    delivered: float
    finished: float
    failed: float


@answer
class GroupCounts:
    """A group of a topic: its ready jobs, and those in hand."""

    group: str
    ready: int
    reserved: int


@answer
class TopicGroups:
    """How many groups have ready jobs that may be taken; how many have some and are held, by a limit or a retry.

    `most`, if asked for: the ten with the most ready jobs.
    """

    ready: int
    held: int
    most: list[GroupCounts] | None = omittable(default=None, nullable=True)


@answer
class TopicCounts:
    """A topic and its exact counts. `paused`: false, true = until resumed, or the unix time at which it ends.

    `due_soon`, if asked for: how many jobs fall due within 60, 300 and 3600 seconds, by these numbers. `rates`, if
    asked for and known. `groups`: if a job that is ready or reserved is of one.
    """

    topic: str
    delayed: int
    ready: int
    reserved: int
    buried: int
    oldest_ready_age: float | None
    paused: bool | float
    limit: Limits | None
    due_soon: dict[str, int] | None = omittable(default=None, nullable=True)
    rates: TopicRates | None = omittable(default=None, nullable=True)
    groups: TopicGroups | None = omittable(default=None, nullable=True)


@answer
class Forecast:
    """How many jobs fall due in each step, the first at `start`."""

    start: float
    step: float
    counts: list[int]


@answer
class Note:
    """What somebody said about dead letters. `by`: the roles of the token, and what the log calls it."""

    text: str
    by: str
    at: float


@answer
class DeadLetterGroup:
    """Dead letters with one reason: how many, since when, how many of which topics, and some of their ids.

    `reason`: the line of the message that says what went wrong, with # instead of ids and long numbers. `counts`, if
    asked for: how many were buried in each step. `note`, if there is one.
    """

    reason: str
    count: int
    first: float
    last: float
    topics: dict[str, int]
    ids: list[str]
    counts: list[int] | None = omittable(default=None, nullable=True)
    note: Note | None = omittable(default=None, nullable=True)


@answer
class DeadLetters:
    """A page of groups of dead letters, the largest first. `cursor` leads to the next page, "" on the last one."""

    groups: list[DeadLetterGroup]
    cursor: str
