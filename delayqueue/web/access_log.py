"""The line about each request, with `access_log = yes`, and its id. No bodies, no tokens, no queries."""

import logging
import re
import secrets
from time import perf_counter
from typing import Final

from delayqueue.web.http import HttpRequest

log = logging.getLogger(__name__)

REQUEST_ID: Final = "X-Request-Id"
REQUEST_ID_KEY: Final = REQUEST_ID.lower()
SANE_ID: Final = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


def request_id(request: HttpRequest) -> str:
    """The id that the client gave the request; "" if it gave none, or one that does not belong in a log."""
    given: str | None = request.headers.get(REQUEST_ID_KEY)
    return given if given is not None and SANE_ID.fullmatch(given) else ""


def new_request_id() -> str:
    """An id for a request that has none and may have to be searched for."""
    return secrets.token_hex(8)


def note(request: HttpRequest, status: int, code: int, began_s: float) -> None:
    """Log the answer to the request that arrived at `began_s` (perf_counter)."""
    fields = {
        "method": request.method,
        "path": request.path,
        "status": status,
        "code": code,
        "ms": round((perf_counter() - began_s) * 1000, 2),
        "client": request.peer,
        "request": request_id(request) or "-",
    }
    log.info(
        "%(method)s %(path)s: %(status)d, code %(code)d, %(ms)s ms, from %(client)s, request %(request)s",
        fields,
        extra={"fields": fields},
    )
