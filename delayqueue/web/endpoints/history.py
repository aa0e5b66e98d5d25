"""Counts and events over time, for charts."""

from dataclasses import replace
from typing import Annotated, Any, Final

from delayqueue.answers.servers import History, HistoryMark
from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.history_steps import ACTION, RINGS, HistoryStep
from delayqueue.domain.job import LIVE_STATES
from delayqueue.web.api import Api
from delayqueue.web.endpoint import VIEWERS, Large, endpoint
from delayqueue.web.fields import one_of, optional
from delayqueue.web.requests import AnyTopicRequest

COUNTS: Final = ("pushed", "delivered", "finished", "failed")
FIRST_SPAN: Final = "3h"


EXAMPLE: Final = History(
    start=1795215180.0,
    step=60.0,
    pushed=[4, None],
    delivered=[3, None],
    finished=[2, None],
    failed=[1, None],
    lateness_mean=[0.003, None],
    lateness_worst=[0.007, None],
    delayed=[1, None],
    ready=[0, None],
    reserved=[1, None],
    buried=[0, None],
    marks=[HistoryMark(at=1795215190.5, kind="outage", lasted=12.5, server="")],
)


class HistoryRequest(AnyTopicRequest):
    """One topic or all, and how far back."""

    span: Annotated[str, one_of(*RINGS)] | None = optional(
        "How far back: `3h`, the default, in steps of a minute, `2d` of 10 minutes, `30d` of an hour; "
        "the last step is not over."
    )

    without_topic = ()  # those that the client may reach


@endpoint("/history", VIEWERS, methods=("POST", "GET"), asks={"topic": "order"}, answers=EXAMPLE)
async def history(api: Api, asked: HistoryRequest) -> Large[History]:
    """Return how many jobs there were, and what happened to them, in each step of time."""
    ring = RINGS[asked.span or FIRST_SPAN]
    found = await api.queue.store.history.read(ring, asked.topic, api.scope)
    columns: dict[str, list[Any]] = {
        name: [step and getattr(step.counts, name) for step in found.steps] for name in COUNTS
    }
    for place, state in enumerate(LIVE_STATES):
        columns[state] = [
            step.depth[place] if step and step.depth else None for step in found.steps
        ]
    return Large(
        History(
            start=found.start_ms / 1000,
            step=ring.step_ms / 1000,
            lateness_mean=[_mean_s(step) for step in found.steps],
            lateness_worst=[_worst_s(step) for step in found.steps],
            **columns,
            marks=found.marks
            if api.scope is EVERYWHERE
            else [replace(mark, server="") for mark in found.marks if mark.kind != ACTION],
        )
    )


def _mean_s(step: HistoryStep | None) -> float | None:
    if step is None or not step.counts.late:
        return None
    return round(step.counts.late_sum_ms / step.counts.late) / 1000


def _worst_s(step: HistoryStep | None) -> float | None:
    return step.counts.late_worst_ms / 1000 if step and step.counts.late else None
