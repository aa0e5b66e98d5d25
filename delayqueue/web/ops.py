"""For those who run the server: is it alive, is it ready."""

from aiohttp import web

from delayqueue.errors import Text, Unavailable
from delayqueue.web.api import Api
from delayqueue.web.auth import GUARD


async def healthz(api: Api, request: web.Request) -> web.Response:
    """The process lives and its loop turns."""
    return api.ok(request)


async def whoami(api: Api, request: web.Request) -> web.Response:
    """What the client's token is good for: its roles, all where no tokens are set."""
    roles = sorted(request.app[GUARD].roles(request))
    return api.ok(request, {"roles": roles, "topics": list(api.scope.entries)})


async def readyz(api: Api, request: web.Request) -> web.Response:
    """The store answers and the timers tick."""
    stale = api.queue.stale_buckets()
    if stale:
        names = ", ".join(str(bucket + 1) for bucket in stale)
        raise Unavailable(
            Text(f"存储暂不可用, bucket: {names}", f"the store does not answer for bucket {names}")
        )
    return api.ok(request)
