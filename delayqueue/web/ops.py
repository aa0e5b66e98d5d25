"""For those who run the server: is it alive, is it ready."""

from aiohttp import web

from delayqueue.errors import Text, Unavailable
from delayqueue.web.api import Api


async def healthz(api: Api, request: web.Request) -> web.Response:
    """The process lives and its loop turns."""
    return api.ok(request)


async def readyz(api: Api, request: web.Request) -> web.Response:
    """The store answers and the timers tick."""
    stale = api.queue.stale_buckets()
    if stale:
        names = ", ".join(str(bucket + 1) for bucket in stale)
        raise Unavailable(
            Text(f"存储暂不可用, bucket: {names}", f"the store does not answer for bucket {names}")
        )
    return api.ok(request)
