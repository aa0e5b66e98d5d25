"""Topics as clients see them; times in seconds."""

from collections.abc import Sequence

from delayqueue.answers.answer import LEFT_OUT, seconds
from delayqueue.answers.topics import GroupCounts, Limits, TopicCounts, TopicGroups, TopicRates
from delayqueue.domain.limit import Limit
from delayqueue.store.census import SOON_S, TopicView


def topic_counts(
    view: TopicView,
    due_soon: Sequence[int] | None = None,
    rates: TopicRates | None = None,
    most_groups: list[GroupCounts] | None = None,
) -> TopicCounts:
    """A topic. `due_soon`: its jobs that fall due within each of SOON_S, None = not counted; `most_groups` alike."""
    return TopicCounts(
        topic=view.topic,
        delayed=view.delayed,
        ready=view.ready,
        reserved=view.reserved,
        buried=view.buried,
        oldest_ready_age=seconds(view.oldest_age_ms),
        paused=_paused(view.paused_until_ms),
        limit=topic_limits(view.limit) if view.limit else None,
        due_soon=dict(zip(map(str, SOON_S), due_soon, strict=True)) if due_soon else LEFT_OUT,
        rates=rates or LEFT_OUT,
        groups=LEFT_OUT if view.groups_ready is None else _groups(view, most_groups),
    )


def _groups(view: TopicView, most: list[GroupCounts] | None) -> TopicGroups:
    return TopicGroups(
        ready=view.groups_ready or 0,
        held=view.groups_held or 0,
        most=LEFT_OUT if most is None else most,
    )


def topic_limits(limit: Limit) -> Limits:
    """The limits of a topic."""
    return Limits(
        rate=limit.rate,
        burst=limit.burst,
        concurrency=limit.concurrency,
        group_concurrency=limit.group_concurrency or LEFT_OUT,
        group_order=limit.group_order or LEFT_OUT,
        buried_retain=seconds(limit.buried_retain_ms),
        buried_to=limit.buried_to or LEFT_OUT,
        max_jobs=limit.max_jobs or LEFT_OUT,
        when_full=limit.when_full or LEFT_OUT,
        declared=limit.declared,
    )


def _paused(until_ms: int | None) -> bool | float:
    return until_ms / 1000 if until_ms else until_ms is not None
