"""Undoes what the store did for clients that are gone."""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Final, TypeVar

from delayqueue.domain.access import EVERYWHERE
from delayqueue.errors import Unavailable
from delayqueue.store.store import Store
from delayqueue.store.verbs import Verb
from delayqueue.tasks import at_most

# Before the next try after the store has failed; doubled each time, as thousands of clients can be gone at once.
RETRY_S = 0.2
LONGEST_RETRY_S: Final = 5.0
PATIENCE_S = 60.0  # a failover takes seconds

Item = TypeVar("Item")


async def undo(
    store: Store, verb: Verb[Item, bool], items: Sequence[Item], closing: asyncio.Event
) -> int:
    """Run a verb that says of each item whether it is lost; again for these, for PATIENCE_S or until the server closes.

    Returns how many are lost then. What was done although its answer was lost is done again.
    """
    until_s, wait_s = monotonic() + PATIENCE_S, RETRY_S
    while True:
        try:
            lost = await store.run(verb, items, EVERYWHERE)
        except Unavailable:
            lost = [True] * len(items)
        items = [item for item, is_lost in zip(items, lost, strict=True) if is_lost]
        if not items or closing.is_set() or monotonic() > until_s:
            return len(items)
        async with at_most(wait_s):
            await closing.wait()
        wait_s = min(2 * wait_s, LONGEST_RETRY_S)
