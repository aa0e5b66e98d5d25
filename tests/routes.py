"""Every endpoint with every method that it declares."""

from typing import Final, NamedTuple

from delayqueue.web.endpoint import Endpoint
from delayqueue.web.endpoints import ENDPOINTS


class Route(NamedTuple):
    """One method of one endpoint."""

    method: str
    path: str
    endpoint: Endpoint


ROUTES: Final = [
    Route(method, endpoint.path, endpoint) for endpoint in ENDPOINTS for method in endpoint.methods
]


def named(route: Route) -> str:
    """The name of its test."""
    return f"{route.method} {route.path}"
