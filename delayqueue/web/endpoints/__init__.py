"""All endpoints: a file for each group, with what they take and what they do."""

from typing import Final

from delayqueue.web.endpoint import endpoints_of
from delayqueue.web.endpoints import (
    about,
    dead_letters,
    finding,
    history,
    jobs,
    operations,
    push,
    ranges,
    reservations,
    schedules,
    subscribers,
    topics,
)

FAMILIES: Final = (
    push,
    reservations,
    jobs,
    ranges,
    dead_letters,
    finding,
    topics,
    history,
    subscribers,
    schedules,
    operations,
    about,
)
ENDPOINTS: Final = endpoints_of(FAMILIES)
