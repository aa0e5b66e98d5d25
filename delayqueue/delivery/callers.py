"""How each subscriber is called: by a webhook, or as a Python handler of this process."""

from collections.abc import Mapping

from delayqueue.delivery import callables
from delayqueue.delivery.callables import Handler
from delayqueue.delivery.outcome import Outcome
from delayqueue.delivery.webhook import Webhooks
from delayqueue.job import Reserved
from delayqueue.subscriber import Subscriber


class Callers:
    """Calls subscribers. `handlers`: the Python ones, by "package.module:callable".

    Only those that this process's own config file names are loaded: who can write to the store must not thereby choose
    what code runs here.
    """

    def __init__(self, webhooks: Webhooks, handlers: Mapping[str, Handler]) -> None:
        self._webhooks = webhooks
        self._handlers = handlers

    def can_call(self, subscriber: Subscriber) -> bool:
        """Whether this process can call the subscriber."""
        return bool(subscriber.url) or subscriber.handler in self._handlers

    async def call(self, subscriber: Subscriber, job: Reserved) -> Outcome:
        """Call a subscriber that can be called."""
        if subscriber.url:
            return await self._webhooks.call(subscriber, job)
        return await callables.call(self._handlers[subscriber.handler], job, subscriber.timeout_ms)
