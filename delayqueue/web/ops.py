"""For those who run the server: is it alive, is it ready."""

from delayqueue.errors import Unavailable
from delayqueue.web.api import Api
from delayqueue.web.http import HttpRequest, HttpResponse


async def healthz(api: Api, request: HttpRequest) -> HttpResponse:
    """The process lives and its loop turns."""
    return api.ok(request)


async def whoami(api: Api, request: HttpRequest) -> HttpResponse:
    """What the client's token is good for: its roles, all where no tokens are set."""
    roles = sorted(api.guard.roles(request))
    return api.ok(request, {"roles": roles, "topics": list(api.scope.entries)})


async def readyz(api: Api, request: HttpRequest) -> HttpResponse:
    """The store answers and the timers tick, at least for some buckets: the others are named."""
    away = [bucket + 1 for bucket in api.queue.stale_buckets()]
    if len(away) == api.queue.bucket_count:
        raise Unavailable
    return api.ok(request, {"away": away} if away else None)
