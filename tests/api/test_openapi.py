"""/openapi.json describes what the server does; /docs shows it and loads nothing else; no answer shows internals."""

import importlib.util
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any, Final

import pytest
from pydantic import TypeAdapter

from delayqueue.errors import Code
from delayqueue.web.endpoint import Endpoint
from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.web.endpoints.push import PushRequest
from delayqueue.web.http import HttpResponse
from delayqueue.web.openapi import document, request_name
from delayqueue.web.parse import is_far
from delayqueue.web.responses import described
from tests.api_client import Api
from tests.fuzz import fuzz, served
from tests.processes import Processes, StoreServer
from tests.routes import ROUTES, Route, named

DOCUMENT: Final = document(ENDPOINTS)


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_every_endpoint_is_in_the_document(route: Route) -> None:
    assert DOCUMENT["paths"][route.path][route.method.lower()]["summary"] == route.endpoint.summary


def numbers(schema: Any) -> Iterator[dict[str, Any]]:
    """What is a number in a document, but for codes, which are constants."""
    if isinstance(schema, dict):
        if schema.get("type") in {"number", "integer"} and "const" not in schema:
            yield schema
        schema = list(schema.values())
    if isinstance(schema, (list, tuple)):
        for part in schema:
            yield from numbers(part)


def test_generated_clients_have_room_for_every_number() -> None:
    """Without a format, oapi-codegen takes unix seconds for a float32, and openapi-generator has ints of 32 bits."""
    found = {(each["type"], each.get("format")) for each in numbers(DOCUMENT)}
    assert found == {("number", "double"), ("integer", "int64")}


IN_ENVELOPE: Final = [each for each in ENDPOINTS if each.gives is not HttpResponse]
WITH_BODY: Final = {each.path: each for each in ENDPOINTS if each.takes}


@pytest.mark.parametrize("endpoint", WITH_BODY.values(), ids=WITH_BODY)
def test_every_field_is_explained(endpoint: Endpoint) -> None:
    schema = DOCUMENT["components"]["schemas"][request_name(endpoint)]
    assert endpoint.takes
    assert set(schema["properties"]) == set(endpoint.takes.model_fields)
    for name, field in schema["properties"].items():
        assert field.get("description"), name


@pytest.mark.parametrize("endpoint", IN_ENVELOPE, ids=lambda endpoint: endpoint.path)
def test_an_example_is_what_it_is_an_example_of(endpoint: Endpoint) -> None:
    if endpoint.takes:
        assert endpoint.asks is not None
        asked = endpoint.takes.model_validate(endpoint.asks, extra="forbid")
        assert asked.model_fields_set == set(endpoint.asks)
        assert not is_far(asked)
        asked.named_topics()
    TypeAdapter(described(endpoint.gives)).validate_python(endpoint.answers)


@pytest.mark.parametrize("code", list(Code))
def test_every_code_is_in_an_example(code: Code) -> None:
    assert f"'code': {code.value}, " in str(DOCUMENT)


@pytest.mark.skipif(
    importlib.util.find_spec("schemathesis") is None, reason="schemathesis is not installed"
)
@pytest.mark.parametrize(
    "phases",
    [
        "examples,fuzzing",
        pytest.param("examples,coverage,fuzzing", marks=pytest.mark.seldom),
    ],
)
def test_made_up_requests_are_answered_as_the_document_says(
    processes: Processes, redis_server: StoreServer, phases: str
) -> None:
    server = served(processes, redis_server)
    done = fuzz(server.url, examples=3, phases=phases, seed=1)
    server.close()
    assert done.returncode == 0, done.stdout
    assert f"Tested: {len(ROUTES) - 1}" in done.stdout  # not the document that it reads


class Page(HTMLParser):
    """What a browser would load, run, or send elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")


async def read_docs(api: Api) -> tuple[str, str]:
    async with api.session.get(f"{api.url}/docs") as response:
        assert response.status == 200
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        return await response.text(), response.headers["Content-Security-Policy"]


async def test_the_page_loads_nothing_and_runs_nothing(api: Api) -> None:
    text, policy = await read_docs(api)
    page = Page(text)
    assert not page.tags & {"script", "link", "img", "iframe", "object", "form", "base", "svg"}
    assert set(page.attributes) <= {"lang", "charset", "name", "content", "href", "id"}
    assert all(target.startswith("#") for target in page.attributes["href"])
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


async def test_the_page_shows_every_endpoint_and_field(api: Api) -> None:
    text, _ = await read_docs(api)
    for route in ROUTES:
        methods = ", ".join(route.endpoint.methods)
        assert f"<b>{methods}</b> {route.path}</h2>" in text
    for field in PushRequest.model_fields:
        assert f"<code>{field}</code>" in text


async def test_the_page_links_once_to_each_endpoint_and_shows_no_marks_of_markdown(
    api: Api,
) -> None:
    text, _ = await read_docs(api)
    menu, _, rest = text.partition("</nav>")
    links = re.findall('href="#([^"]+)"', menu)
    assert sorted(links) == sorted(endpoint.path.strip("/") for endpoint in ENDPOINTS)
    sections = re.findall('<section id="([^"]+)"', rest)
    assert len(sections) == len(set(sections))
    assert {*links, *re.findall('href="#([^"]+)"', rest)} == set(sections)
    assert "`" not in text


async def test_the_document_is_json(api: Api) -> None:
    async with api.session.get(f"{api.url}/openapi.json") as response:
        assert await response.json() == json.loads(json.dumps(DOCUMENT))


def test_no_field_of_a_request_has_a_default_by_which_generators_would_require_it() -> None:
    """openapi-typescript makes every property with a default required, unless it is told not to."""
    schemas: dict[str, Any] = DOCUMENT["components"]["schemas"]
    requests = [schema for name, schema in schemas.items() if name.endswith("Request")]
    shapes = [shape for schema in requests for shape in schema["properties"].values()]
    assert len(shapes) > 50
    assert [shape for shape in shapes if "default" in shape] == []
    assert "2 by default" in schemas["RetryRequest"]["properties"]["factor"]["description"]


def test_every_operation_has_the_tag_of_its_file_and_the_server_is_the_one_that_was_asked() -> None:
    described = {tag["name"] for tag in DOCUMENT["tags"] if tag["description"]}
    used = [operation["tags"] for path in DOCUMENT["paths"].values() for operation in path.values()]
    assert {tag for tags in used for tag in tags} == described
    assert all(len(tags) == 1 for tags in used)
    assert DOCUMENT["paths"]["/buried"]["post"]["tags"] == ["dead letters"]
    assert [server["url"] for server in DOCUMENT["servers"]] == ["/"]


def test_a_schema_is_named_after_its_call_or_its_error() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    calls = {name.removesuffix("Request").removesuffix("Answer") for name in schemas}
    assert {"Finish", "Delete", "PauseSubscriber", "List"} <= calls
    finish = DOCUMENT["paths"]["/finish"]["post"]
    (content,) = finish["requestBody"]["content"].values()
    assert content["schema"]["$ref"].endswith("/FinishRequest")
    (content,) = finish["responses"]["200"]["content"].values()
    names = [one["$ref"].rpartition("/")[2] for one in content["schema"]["anyOf"]]
    assert names == ["FinishAnswer", "Invalid", "NoSuchJob", "StaleReceipt"]
    codes = [schemas[name]["properties"]["code"]["const"] for name in names]
    assert codes == [Code.OK, Code.INVALID, Code.NO_SUCH_JOB, Code.STALE_RECEIPT]


def test_a_body_that_may_be_an_array_has_a_name_of_its_own() -> None:
    """Without one, oapi-codegen makes a type that cannot be filled, and openapi-generator loses PushRequest."""
    (content,) = DOCUMENT["paths"]["/push"]["post"]["requestBody"]["content"].values()
    assert content["schema"] == {"$ref": "#/components/schemas/PushRequests"}


def test_what_wraps_an_answer_inside_of_the_server_is_not_in_the_document() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert [name for name in schemas if name.startswith(("Large", "Returnable"))] == []


def test_the_limits_of_the_document_are_those_of_the_code() -> None:
    properties: dict[str, Any] = DOCUMENT["components"]["schemas"]["PushRequest"]["properties"]
    assert (properties["ttr"]["minimum"], properties["ttr"]["maximum"]) == (1, 86_400)
