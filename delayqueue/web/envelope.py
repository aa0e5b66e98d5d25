"""The envelope around every answer, {"code", "message", "data"}, in the client's language."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Final

from delayqueue.answers.answer import members_of
from delayqueue.errors import QueueError, Text
from delayqueue.tasks import by_turns
from delayqueue.web import warnings
from delayqueue.web.access_log import REQUEST_ID, REQUEST_ID_KEY, request_id
from delayqueue.web.http import JSON, HttpRequest, HttpResponse
from delayqueue.web.responses import as_json

LANGUAGE: Final = "accept-language"


def envelope(code: int, message: str, data: object = None) -> dict[str, object]:
    """The envelope as an object."""
    return {"code": int(code), "message": message, "data": data}


class Responder:
    """Answers in the language that the request asks for, or else in the configured one (zh or en)."""

    def __init__(self, language: str) -> None:
        self._english = language == "en"
        # of success, in the configured language: without data, and the start of the JSON with some
        self._usual: dict[Text, tuple[HttpResponse, bytes]] = {}

    def say(self, request: HttpRequest, message: Text) -> str:
        """The message in the request's language."""
        accepted = request.headers.get(LANGUAGE)
        if accepted is None:
            return message.en if self._english else message.zh
        first = accepted.lstrip()[:2].lower()
        english = first == "en" or (self._english and first != "zh")
        return message.en if english else message.zh

    def ok(self, request: HttpRequest, data: object, message: Text) -> HttpResponse:
        """The answer to a request that succeeded."""
        if LANGUAGE in request.headers or REQUEST_ID_KEY in request.headers or request.warnings:
            body = as_json(envelope(0, self.say(request, message), data))
            return HttpResponse(body, _headers(request))
        empty, start = self._usual.get(message) or self._first(request, message)
        return empty if data is None else HttpResponse(start + as_json(data) + b"}", JSON)

    def _first(self, request: HttpRequest, message: Text) -> tuple[HttpResponse, bytes]:
        """What usual answers with this message have in common."""
        body = as_json(envelope(0, self.say(request, message)))
        empty = HttpResponse(body, JSON, repeats=True)
        found = self._usual[message] = empty, body.removesuffix(b"null}")
        return found

    async def ok_by_turns(self, request: HttpRequest, data: object, message: Text) -> HttpResponse:
        """The answer of success with data that can be megabytes: others get their turn while it is written."""
        written = bytearray()
        await _write(envelope(0, self.say(request, message), data), written)
        return HttpResponse(bytes(written), _headers(request))

    def error(self, request: HttpRequest, error: QueueError, given_id: str = "") -> HttpResponse:
        """The answer to a request that failed; `given_id` identifies it if its client did not."""
        body = envelope(error.code, self.say(request, error.text))
        headers = {**_headers(request), **error.headers}
        if given_id:
            headers[REQUEST_ID] = given_id
        return HttpResponse(as_json(body), headers, error.status)


async def _write(value: object, written: bytearray) -> None:
    """Append the JSON: an object member by member, a list or what an iterator yields by turns."""
    if is_dataclass(value):
        value = members_of(value)
    if isinstance(value, dict):
        before = b"{"
        for name, member in value.items():
            written += before + as_json(name) + b":"
            await _write(member, written)
            before = b","
        written += b"}" if value else b"{}"
    elif isinstance(value, list | Iterator):
        start = len(written)
        async for element in by_turns(value):
            written += b"," + as_json(element)
        written[start : start + 1] = b"["  # for the first comma
        written += b"]"
    else:
        written += as_json(value)


def _headers(request: HttpRequest) -> Mapping[str, str]:
    """The Content-Type, warnings about the request, and its id if the client gave one."""
    headers = {**JSON, **warnings.headers(request.warnings)} if request.warnings else JSON
    if REQUEST_ID_KEY not in request.headers or not (given := request_id(request)):
        return headers
    return {**headers, REQUEST_ID: given}
