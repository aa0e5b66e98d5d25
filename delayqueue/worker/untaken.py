"""Jobs that nobody takes: those of a task that was renamed or removed while they waited."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Final

from delayqueue.client.api_request import TransportError
from delayqueue.errors import QueueError

if TYPE_CHECKING:
    from collections.abc import Collection

    from delayqueue.client.aio import AsyncClient

log = logging.getLogger(__name__)

FIRST_S: Final = 60.0  # the others of a deployment have started by then
INTERVAL_S: Final = 600.0
# for which the oldest job has been ready; the server tells rates of the last minute
AGE_S: Final = 60.0
MOST: Final = 1000  # topics that are looked at, those with the oldest ready jobs


async def watch(client: AsyncClient, topics: Collection[str]) -> None:
    """Log, once each, topics named like these that have jobs which nobody takes, until cancelled."""
    said: set[str] = set()
    await asyncio.sleep(FIRST_S)
    while True:
        try:
            for topic, ready in await untaken(client, topics):
                if topic not in said:
                    said.add(topic)
                    log.warning(
                        "nobody takes the %d ready jobs of %s; if that is a former name of a task: also=[%r]",
                        ready,
                        topic,
                        topic,
                    )
        except (QueueError, TransportError) as error:  # a token may not be allowed to see topics
            log.debug("cannot look for jobs that nobody takes: %s", error)
        await asyncio.sleep(INTERVAL_S)


async def untaken(client: AsyncClient, topics: Collection[str]) -> list[tuple[str, int]]:
    """Topics whose name begins with the first word of one of these, and how many ready jobs nobody takes there."""
    words = {_first_word(topic) for topic in topics}
    found = await client.topics(sort="oldest", limit=MOST, rates=True)
    return [
        (one.topic, one.ready)
        for one in found
        if one.topic not in topics
        and _first_word(one.topic) in words
        and (one.oldest_ready_age or 0) > AGE_S
        and not one.paused
        and not (one.rates and one.rates.delivered)
    ]


def _first_word(topic: str) -> str:
    return re.split(r"[\W_]", topic, maxsplit=1)[0]
