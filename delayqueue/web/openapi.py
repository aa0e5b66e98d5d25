"""/openapi.json: the endpoints and their models, as OpenAPI 3.1."""

from collections.abc import Iterable, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from pydantic import TypeAdapter

from delayqueue import __version__
from delayqueue.domain.access import Role
from delayqueue.domain.job import MAX_BATCH
from delayqueue.errors import (
    Forbidden,
    QueueError,
    SlowRequest,
    TooLarge,
    TooMany,
    Unauthorized,
)
from delayqueue.web.endpoint import Endpoint
from delayqueue.web.http import HttpResponse
from delayqueue.web.requests import Request
from delayqueue.web.responses import described

Json = dict[str, Any]

REF: Final = "#/components/schemas/{model}"
ENVELOPE: Final = {"$ref": REF.format(model="Envelope")}
GUARDED: Final = (Unauthorized, Forbidden, TooMany)  # errors of any request that needs a token
WITH_BODY: Final = (SlowRequest, TooLarge)
HEADERS: Final[dict[HTTPStatus, str]] = {
    HTTPStatus.UNAUTHORIZED: "WWW-Authenticate",
    HTTPStatus.TOO_MANY_REQUESTS: "Retry-After",
}


@cache
def document(endpoints: tuple[Endpoint, ...]) -> Json:
    """The description of these endpoints."""
    schemas: Json = {"Envelope": _envelope_of({"type": "null"})}
    paths: dict[str, Json] = {}
    for endpoint in endpoints:
        for method in endpoint.methods:
            # the ids of two methods on one path must differ
            name = endpoint.path.strip("/") + ("" if method == "POST" else f"_{method.lower()}")
            paths.setdefault(endpoint.path, {})[method.lower()] = {
                "operationId": name,
                "tags": [endpoint.tag.name] if endpoint.tag else [],
                "summary": endpoint.summary,
                **_operation(endpoint, method, schemas),
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
            "schemas": schemas,
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


def _operation(endpoint: Endpoint, method: str, schemas: Json) -> Json:
    roles = endpoint.roles
    described: Json = {"security": [] if roles is None else [{}, {"bearer": []}, {"basic": []}]}
    if roles is not None:
        described["description"] = f"Role: {_names(roles)}."
    if endpoint.gives is HttpResponse:  # not JSON: a page, or text for a program
        described["responses"] = {"200": {"description": "not in the envelope"}}
        described["responses"] |= _refusals(GUARDED if roles else ())
        return described
    errors = [*endpoint.errors, *(GUARDED if roles is not None else (Forbidden,))]
    if endpoint.takes is not None and method != "GET":
        described["requestBody"] = _body(endpoint, endpoint.takes, schemas)
        errors += WITH_BODY
    here = [error for error in errors if error.status == HTTPStatus.OK]
    described["responses"] = {"200": _success(endpoint, here, schemas)} | _refusals(
        [error for error in errors if error.status != HTTPStatus.OK]
    )
    return described


def _names(roles: frozenset[Role]) -> str:
    return " or ".join(role.value for role in Role if role in roles | {Role.ADMIN})


def _body(endpoint: Endpoint, model: type[Request], schemas: Json) -> Json:
    schema = model.model_json_schema(ref_template=REF, mode="validation")
    for name, inner in schema.pop("$defs", {}).items():
        schemas[name] = _as_sent(inner)
    schemas[model.__name__] = _as_sent(schema)
    one: Json = {"$ref": REF.format(model=model.__name__)}
    many = {"type": "array", "items": one, "minItems": 1, "maxItems": MAX_BATCH}
    return {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"anyOf": [one, many]} if endpoint.takes_many else one,
                "example": endpoint.asks,
            }
        },
    }


def _as_sent(schema: Json) -> Json:
    """The schema that clients should follow; keywords are moved from where pydantic puts them."""
    del schema["additionalProperties"]  # accepted, but nobody should send them
    for shape in schema["properties"].values():
        choices = [shape, *shape.get("anyOf", ()), shape.get("items", {})]
        # from the field, or its type, or its items' type
        said = [choice.pop("description", "") for choice in choices]
        description = next(filter(None, said), "")
        # not as `default`: code generators would take an optional field for one that is always there
        default = shape.pop("default", None)
        if default is not None:
            description = f"{description} {default:g} by default.".lstrip()
        if description:
            shape["description"] = description
    return schema


def _success(endpoint: Endpoint, errors: Sequence[type[QueueError]], schemas: Json) -> Json:
    gives = TypeAdapter(described(endpoint.gives)).json_schema(
        ref_template=REF, mode="serialization"
    )
    schemas |= gives.pop("$defs", {})
    done = _envelope_of(gives, {0})
    examples = {"done": _example(0, endpoint.done.en, endpoint.answers)}
    examples |= {error.__name__: _example(error.code, error.default.en) for error in errors}
    return {
        "description": "done; or not, as `code` says",
        "content": {
            "application/json": {
                "schema": {"anyOf": [done, _failed(errors)]} if errors else done,
                "examples": {name: {"value": value} for name, value in examples.items()},
            }
        },
    }


def _failed(errors: Iterable[type[QueueError]]) -> Json:
    return _envelope_of({"type": "null"}, {int(error.code) for error in errors})


def _refusals(errors: Iterable[type[QueueError]]) -> Json:
    """The answers with a status of their own."""
    answers: Json = {}
    for error in errors:
        answer: Json = {
            "description": error.default.en,
            "content": {
                "application/json": {
                    "schema": ENVELOPE,
                    "example": _example(error.code, error.default.en),
                }
            },
        }
        if header := HEADERS.get(error.status):
            answer["headers"] = {header: {"required": True, "schema": {"type": "string"}}}
        answers[str(error.status.value)] = answer
    return answers


def _envelope_of(data: Json, codes: Iterable[int] = ()) -> Json:
    code = {"type": "integer", "enum": sorted(codes)} if codes else {"type": "integer"}
    return {
        "type": "object",
        "required": ["code", "message", "data"],
        "properties": {"code": code, "message": {"type": "string"}, "data": data},
        "additionalProperties": False,
    }


def _example(code: int, message: str, data: object = None) -> Json:
    return {"code": int(code), "message": message, "data": data}
