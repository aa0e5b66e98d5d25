"""How each subscriber is called: as a webhook, or as a Python handler of this process."""

from delayqueue.delivery.callables import PythonHandlers
from delayqueue.delivery.outcome import CallOutcome, Event
from delayqueue.delivery.webhook import Webhooks
from delayqueue.domain.subscriber import Subscriber


class SubscriberCaller:
    """Calls subscribers.

    Only handlers that this process's own config file names are callable: write access to the store must not decide
    which code runs here.
    """

    def __init__(self, webhooks: Webhooks, handlers: PythonHandlers) -> None:
        self._webhooks = webhooks
        self._handlers = handlers

    def can_call(self, subscriber: Subscriber) -> bool:
        """Whether this process can call the subscriber."""
        return bool(subscriber.url) or self._handlers.knows(subscriber)

    async def call(self, subscriber: Subscriber, job: Event) -> CallOutcome:
        """Call a subscriber for which can_call() is true."""
        if subscriber.url:
            return await self._webhooks.call(subscriber, job)
        return await self._handlers.call(subscriber, job)
