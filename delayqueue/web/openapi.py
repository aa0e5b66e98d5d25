"""/openapi.json: the endpoints and their models, as OpenAPI 3.1.

What an endpoint takes and answers is named after it: FinishRequest, FinishAnswer. An answer that is an error has the
error's name: NoSuchJob. So `code` alone tells which one it is, and generated clients have one class for each.
"""

import re
from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from typing import Any, Final, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from delayqueue import __version__
from delayqueue.domain.access import Role
from delayqueue.domain.job import MAX_BATCH
from delayqueue.errors import (
    Code,
    Forbidden,
    QueueError,
    SlowRequest,
    TooLarge,
    TooMany,
    Unauthorized,
)
from delayqueue.web.endpoint import Endpoint, Errors
from delayqueue.web.http import HttpResponse
from delayqueue.web.responses import described

Json = dict[str, Any]

SCHEMA: Final = "#/components/schemas/{model}"
RESPONSE: Final = "#/components/responses/"
ANSWERED: Final[Literal["serialization"]] = "serialization"
GUARDED: Final = (Unauthorized, Forbidden, TooMany)  # errors of any request that needs a token
WITH_BODY: Final = (SlowRequest, TooLarge)
HEADERS: Final[dict[HTTPStatus, str]] = {
    HTTPStatus.UNAUTHORIZED: "WWW-Authenticate",
    HTTPStatus.TOO_MANY_REQUESTS: "Retry-After",
}


class _Generator(GenerateJsonSchema):
    """Generates schemas without titles, which only repeat the names of the fields, and with formats.

    Without these, some generators take 32 bits: unix seconds would be off by a minute, and large priorities overflow.
    """

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002  # pydantic's
        return False

    def float_schema(self, schema: core_schema.FloatSchema) -> Json:
        return super().float_schema(schema) | {"format": "double"}

    def int_schema(self, schema: core_schema.IntSchema) -> Json:
        return super().int_schema(schema) | {"format": "int64"}


@cache
def document(endpoints: tuple[Endpoint, ...]) -> Json:
    """The description of these endpoints."""
    paths: dict[str, Json] = {}
    for endpoint in endpoints:
        for method in endpoint.methods:
            # the ids of two methods on one path must differ
            name = endpoint.path.strip("/") + ("" if method == "POST" else f"_{method.lower()}")
            paths.setdefault(endpoint.path, {})[method.lower()] = {
                "operationId": name,
                "tags": [endpoint.tag.name] if endpoint.tag else [],
                "summary": endpoint.summary,
                "x-stability": endpoint.stability.value,
                **_operation(endpoint, method),
            }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "delay-queue",
            "version": __version__,
            "description": (
                "Jobs that are handed out when they are due. The status is 200 whenever a request reached the "
                "queue; `code` says what happened. A body may have any Content-Type; unknown fields are ignored and "
                "named in the header X-Delayqueue-Unknown-Fields, or refused if `strict` is set; null is the same "
                "as omitting the field."
            ),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/", "description": "the server that this document is from"}],
        "tags": [tag._asdict() for tag in dict.fromkeys(each.tag for each in endpoints) if tag],
        "paths": paths,
        "components": {
            "schemas": _requests(endpoints) | _answers(endpoints) | _errors(),
            "responses": {error.__name__: _refusal(error) for error in _refusals(endpoints)},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "The token as password.",
                },
            },
        },
    }


def _operation(endpoint: Endpoint, method: str) -> Json:
    roles = endpoint.roles
    described: Json = {"security": [] if roles is None else [{}, {"bearer": []}, {"basic": []}]}
    if roles is not None:
        described["description"] = f"Role: {_names(roles)}."
    if _has_body(endpoint, method):
        described["requestBody"] = _body(endpoint)
    described["responses"] = {"200": _success(endpoint)}
    for error in _errors_of(endpoint, method):
        if error.status != HTTPStatus.OK:
            response = {"$ref": f"{RESPONSE}{error.__name__}"}
            described["responses"][str(error.status.value)] = response
    return described


def _has_body(endpoint: Endpoint, method: str) -> bool:
    return endpoint.takes is not None and method != "GET"


def _in_envelope(endpoint: Endpoint) -> bool:
    """Whether the endpoint answers JSON, and neither a page nor text for a program."""
    return endpoint.gives is not HttpResponse


def _errors_of(endpoint: Endpoint, method: str) -> Errors:
    """All errors that the endpoint can answer."""
    guards = GUARDED if endpoint.roles is not None else (Forbidden,)
    if not _in_envelope(endpoint):
        return guards if endpoint.roles else ()
    return (*endpoint.errors, *guards, *(WITH_BODY if _has_body(endpoint, method) else ()))


def _refusals(endpoints: Iterable[Endpoint]) -> Iterable[type[QueueError]]:
    """All errors with a status of their own."""
    found = [
        error
        for endpoint in endpoints
        for method in endpoint.methods
        for error in _errors_of(endpoint, method)
        if error.status != HTTPStatus.OK
    ]
    return dict.fromkeys(found)


def _names(roles: frozenset[Role]) -> str:
    return " or ".join(role.value for role in Role if role in roles | {Role.ADMIN})


def _ref(model: str) -> Json:
    return {"$ref": SCHEMA.format(model=model)}


def _in_capitals(words: str) -> str:
    return "".join(word.capitalize() for word in re.findall("[a-z]+", words.lower()))


def request_name(endpoint: Endpoint) -> str:
    """The name of the schema of the endpoint's request."""
    return f"{_in_capitals(endpoint.path)}Request"


def _answer_name(endpoint: Endpoint) -> str:
    return f"{_in_capitals(endpoint.path)}Answer"


def _name_of(code: Code) -> str:
    return _in_capitals(code.name)


def _body(endpoint: Endpoint) -> Json:
    name = request_name(endpoint)
    return {
        "required": True,
        "content": {
            "application/json": {
                "schema": _ref(f"{name}s" if endpoint.takes_many else name),
                "example": endpoint.asks,
            }
        },
    }


def _one_or_many(endpoint: Endpoint) -> Json:
    one = _ref(request_name(endpoint))
    many = {"type": "array", "items": one, "minItems": 1, "maxItems": MAX_BATCH}
    return {"anyOf": [one, many]}


def _requests(endpoints: Iterable[Endpoint]) -> Json:
    """The schemas of requests, and of the objects in them."""
    schemas: Json = {}
    for endpoint in endpoints:
        if endpoint.takes is not None:
            schema = endpoint.takes.model_json_schema(
                ref_template=SCHEMA, schema_generator=_Generator, mode="validation"
            )
            schemas |= schema.pop("$defs", {})
            schemas[request_name(endpoint)] = schema
    # with a name: oapi-codegen cannot fill a union without one, openapi-generator takes it for PushRequest
    unions = {
        f"{request_name(endpoint)}s": _one_or_many(endpoint)
        for endpoint in endpoints
        if endpoint.takes_many
    }
    return {name: _as_sent(schema) for name, schema in schemas.items()} | unions


def _as_sent(schema: Json) -> Json:
    """The schema that clients should follow; keywords are moved from where pydantic puts them."""
    del schema["additionalProperties"]  # accepted, but nobody should send them
    del schema["title"]  # the model's name, not that of the endpoint
    for shape in schema["properties"].values():
        choices = [shape, *shape.get("anyOf", ()), shape.get("items", {})]
        # from the field, or its type, or its items' type
        said = [choice.pop("description", "") for choice in choices]
        description = next(filter(None, said), "")
        # in the description, not as `default`: code generators would take the field for one that is always there
        default = shape.pop("default", None)
        if default is not None:
            description = f"{description} {default:g} by default.".lstrip()
        if description:
            shape["description"] = description
    return schema


def _answers(endpoints: Iterable[Endpoint]) -> Json:
    """The schemas of successful answers, and of the objects in them."""
    inputs = [
        (_answer_name(endpoint), ANSWERED, TypeAdapter(described(endpoint.gives)))
        for endpoint in endpoints
        if _in_envelope(endpoint)
    ]
    data, definitions = TypeAdapter.json_schemas(
        inputs, ref_template=SCHEMA, schema_generator=_Generator
    )
    return {
        **{name: _envelope(Code.OK, schema) for (name, _), schema in data.items()},
        **definitions.get("$defs", {}),
    }


def _errors() -> Json:
    """An envelope for each code other than 0."""
    return {_name_of(code): _envelope(code, {"type": "null"}) for code in Code if code != Code.OK}


def _success(endpoint: Endpoint) -> Json:
    """The answers with status 200."""
    if not _in_envelope(endpoint):
        return {"description": "not in the envelope"}
    errors = [error for error in endpoint.errors if error.status == HTTPStatus.OK]
    names = [_answer_name(endpoint), *dict.fromkeys(_name_of(error.code) for error in errors)]
    examples = {"done": _example(Code.OK, endpoint.done.en, endpoint.answers)}
    examples |= {error.__name__: _example(error.code, error.default.en) for error in errors}
    return {
        "description": "done; or not, as `code` says",
        "content": {
            "application/json": {
                "schema": {"anyOf": [*map(_ref, names)]} if errors else _ref(names[0]),
                "examples": {name: {"value": value} for name, value in examples.items()},
            }
        },
    }


def _refusal(error: type[QueueError]) -> Json:
    """An answer with a status of its own."""
    answer: Json = {
        "description": error.default.en,
        "content": {
            "application/json": {
                "schema": _ref(_name_of(error.code)),
                "example": _example(error.code, error.default.en),
            }
        },
    }
    if header := HEADERS.get(error.status):
        answer["headers"] = {header: {"required": True, "schema": {"type": "string"}}}
    return answer


def _envelope(code: Code, data: Json) -> Json:
    return {
        "type": "object",
        "required": ["code", "message", "data"],
        "properties": {
            "code": {"type": "integer", "const": int(code)},
            "message": {"type": "string"},
            "data": data,
        },
        "additionalProperties": False,
    }


def _example(code: Code, message: str, data: object = None) -> Json:
    return {"code": int(code), "message": message, "data": data}
