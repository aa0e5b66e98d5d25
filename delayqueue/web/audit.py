"""Logs changes that are made on the page at /admin: who did what to how many. Other programs are in the access log."""

import json
import logging
from typing import Any, Final, NamedTuple

from delayqueue.answers.jobs import Count
from delayqueue.domain.access import Role
from delayqueue.errors import Code
from delayqueue.web.auth import Authenticator
from delayqueue.web.endpoint import Endpoint, Large
from delayqueue.web.http import HttpRequest
from delayqueue.web.requests import Request

log = logging.getLogger(__name__)

TARGETS: Final = ("topic", "tag", "state", "name", "id", "reason", "by", "delay", "due", "seconds")
MOST_IDS: Final = 3  # of many that are named


class PageAction(NamedTuple):
    """A change made on the page: by whom, what, and whether it had an effect."""

    who: str
    what: str
    has_changed: bool


Target = dict[str, object]


def target_of(endpoint: Endpoint, asked: object) -> Target | None:
    """What a request of the page would change; None = nothing."""
    if endpoint.roles is None or Role.VIEW in endpoint.roles:
        return None
    given = vars(asked) if isinstance(asked, Request) else {}  # without unknown fields
    named = {name: given[name] for name in TARGETS if given.get(name) is not None}
    if many := given.get("ids"):
        some = many if len(many) <= MOST_IDS else [*many[:MOST_IDS], "…"]
        return named | {"jobs": len(many), "ids": some}
    return named


def note(
    guard: Authenticator, request: HttpRequest, target: Target, code: Code, data: Any
) -> PageAction:
    """Log the outcome of a change."""
    fields: dict[str, Any] = {
        "who": guard.name_of(request),
        "client": request.peer,
        "what": request.path.removeprefix("/"),
        "target": json.dumps(target, ensure_ascii=False, default=str),
        "count": _count(data) if code is Code.OK else 0,
        "code": int(code),
    }
    log.info(
        "page: %(what)s %(target)s by %(who)s from %(client)s: %(count)d done, code %(code)d",
        fields,
        extra={"fields": fields},
    )
    return PageAction(
        fields["who"],
        f"{fields['what']} {fields['target']}: {fields['count']}",
        fields["count"] > 0,
    )


def _count(data: Any) -> int:
    """How many jobs were changed."""
    if isinstance(data, Large):
        data = data.data
    if isinstance(data, list):
        return sum(one.code == Code.OK for one in data)
    return data.count if isinstance(data, Count) else 1
