"""Undoes what the store did for clients that are gone."""

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final, TypeVar

from delayqueue.domain.access import EVERYWHERE
from delayqueue.errors import Unavailable
from delayqueue.store.store import Store
from delayqueue.store.verbs import Verb

RETRY_S: Final = 0.2  # before the next try after the store has failed
PATIENCE_S: Final = 60.0  # a failover takes seconds

Item = TypeVar("Item")


async def undo(
    store: Store, verb: Verb[Item, bool], items: Sequence[Item], is_closing: Callable[[], bool]
) -> int:
    """Run a verb that says of each item whether it is lost; again for these, for PATIENCE_S or until the server closes.

    Returns how many are lost then.
    """
    until_s = monotonic() + PATIENCE_S
    while True:
        try:
            lost = await store.run(verb, items, EVERYWHERE)
        except Unavailable:
            lost = [True] * len(items)
        items = [item for item, is_lost in zip(items, lost, strict=True) if is_lost]
        if not items or is_closing() or monotonic() > until_s:
            return len(items)
        await asyncio.sleep(RETRY_S)
