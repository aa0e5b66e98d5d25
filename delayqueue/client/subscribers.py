"""The verbs on subscribers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

from delayqueue.answers.subscribers import Subscriber, SubscriberPage, Trial
from delayqueue.client.api_request import ApiRequest, verb
from delayqueue.client.fields import each, nothing, read, read_page
from delayqueue.client.jobs import OnConflict, Retry, given
from delayqueue.client.times import Seconds
from delayqueue.domain.job import IfExists
from delayqueue.domain.subscriber import LONGEST_TRIAL_S


class SubscriberVerbs:
    """The endpoints from /subscribe to /try-subscriber."""

    @verb
    def subscribe(  # noqa: PLR0913  # one argument per field of a subscriber
        self,
        name: str,
        topic: str | None = None,
        url: str | None = None,
        *,
        method: Literal["POST", "PUT", "PATCH", "DELETE", "GET"] | None = None,
        headers: Mapping[str, str] | None = None,
        order: int | None = None,
        timeout: Seconds | None = None,
        retry: Retry | None = None,
        concurrency: int | None = None,
        secret: str | None = None,
        expect: str | None = None,
        on_failure: Literal["bury", "continue"] | None = None,
        payload: Literal["body", "event"] | None = None,
        if_exists: OnConflict | Literal["change"] | None = None,
    ) -> ApiRequest[None]:
        """Register `url` as a webhook for a topic's due jobs.

        Raises JobExists if the name is taken, unless `if_exists` is "replace", "keep" or "change": that changes only
        what is given, and raises NoSuchJob if there is no such subscriber.
        """
        request = given(**locals())
        # the server draws other delays each time: a repetition would take the first try's for another subscriber
        is_drawn = isinstance(retry, Mapping) and bool(retry.get("jitter"))
        again = not is_drawn or if_exists not in {None, IfExists.FAIL}
        return ApiRequest("/subscribe", request, nothing, repeatable=again)

    @verb
    def unsubscribe(self, name: str) -> ApiRequest[None]:
        """Remove a subscriber. Raises NoSuchJob if no subscriber has the name."""
        return ApiRequest(
            "/unsubscribe", given(**locals()), nothing, repeatable=True, gone_is_done=True
        )

    @verb
    def subscribers(
        self, topic: str | None = None, *, calls: bool | None = None
    ) -> ApiRequest[list[Subscriber]]:
        """List the subscribers of a topic, or of all topics, in calling order; with `calls` also their recent calls."""
        return ApiRequest(
            "/subscribers", given(**locals()), partial(each, Subscriber), repeatable=True
        )

    @verb
    def subscribers_page(
        self,
        topic: str | None = None,
        *,
        calls: bool | None = None,
        limit: int = 1000,
        cursor: str | None = None,
    ) -> ApiRequest[SubscriberPage]:
        """Return at most `limit` subscribers in calling order; `cursor` is that of the last page."""
        return ApiRequest(
            "/subscribers",
            given(**locals()),
            partial(read_page, SubscriberPage, "subscribers"),
            repeatable=True,
        )

    @verb
    def pause_subscriber(self, name: str) -> ApiRequest[None]:
        """Pause a subscriber's calls. Raises NoSuchJob if no subscriber has the name."""
        return ApiRequest("/pause-subscriber", given(**locals()), nothing, repeatable=True)

    @verb
    def resume_subscriber(self, name: str) -> ApiRequest[None]:
        """Resume a subscriber's calls. Raises NoSuchJob if no subscriber has the name."""
        return ApiRequest("/resume-subscriber", given(**locals()), nothing, repeatable=True)

    @verb
    def try_subscriber(self, name: str, body: str = "") -> ApiRequest[Trial]:
        """Call a webhook with a made-up job.

        Raises NoSuchJob if no subscriber has the name, WrongState if it has no URL.
        """
        request = given(**locals())
        return ApiRequest("/try-subscriber", request, partial(read, Trial), wait_s=LONGEST_TRIAL_S)
