"""The envelope around every answer, {"code", "message", "data"}, in the client's language."""

from collections.abc import Mapping
from http import HTTPStatus

from aiohttp import web
from pydantic_core import to_json

from delayqueue.errors import DONE, QueueError, Text
from delayqueue.web.journal import REQUEST_ID, request_id

CONTENT_TYPE = {"Content-Type": "application/json; charset=utf-8"}


def envelope(code: int, message: str, data: object = None) -> dict[str, object]:
    """The envelope as an object."""
    return {"code": int(code), "message": message, "data": data}


def answer(
    body: object, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] = CONTENT_TYPE
) -> web.Response:
    """An answer with this object as JSON."""
    return web.Response(body=to_json(body), status=status, headers=headers)


class Speaker:
    """Answers in the language that the request asks for, else in the configured one (zh or en)."""

    def __init__(self, language: str) -> None:
        self._english = language == "en"
        self._without_data: dict[str, bytes] = {}

    def say(self, request: web.BaseRequest, message: Text) -> str:
        """The message in the request's language."""
        accepted = request.headers.get("Accept-Language")
        if accepted is None:
            return message.en if self._english else message.zh
        first = accepted.lstrip()[:2].lower()
        english = first == "en" or (self._english and first != "zh")
        return message.en if english else message.zh

    def ok(
        self, request: web.BaseRequest, data: object = None, message: Text = DONE
    ) -> web.Response:
        """The answer to a request that went well."""
        said = self.say(request, message)
        headers = _headers(request)
        if data is not None:
            return answer(envelope(0, said, data), headers=headers)
        body = self._without_data.get(said)
        if body is None:
            body = self._without_data[said] = to_json(envelope(0, said))
        return web.Response(body=body, headers=headers)

    def error(
        self, request: web.BaseRequest, error: QueueError, given_id: str = ""
    ) -> web.Response:
        """The answer to a request that failed; `given_id` names it where its client did not."""
        body = envelope(error.code, self.say(request, error.text))
        headers = {**_headers(request), **error.headers}
        if given_id:
            headers[REQUEST_ID] = given_id
        return answer(body, error.status, headers)


def _headers(request: web.BaseRequest) -> Mapping[str, str]:
    """The Content-Type, and the request's id where its client gave it one."""
    if REQUEST_ID not in request.headers or not (given := request_id(request)):
        return CONTENT_TYPE
    return {**CONTENT_TYPE, REQUEST_ID: given}
