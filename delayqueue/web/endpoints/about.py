"""The description of all endpoints."""

from pydantic_core import to_json

from delayqueue.web.api import Api
from delayqueue.web.endpoint import VIEWERS, endpoint
from delayqueue.web.http import HttpResponse
from delayqueue.web.openapi import document
from delayqueue.web.pages import answer_page


@endpoint("/openapi.json", VIEWERS, methods=("GET",))
async def openapi(api: Api) -> HttpResponse:
    """This description, for programs."""
    return HttpResponse(to_json(document(api.endpoints)))


@endpoint("/docs", VIEWERS, methods=("GET",))
async def docs(api: Api) -> HttpResponse:
    """This description, for people."""
    return answer_page(document(api.endpoints))
