"""/openapi.json, and the same for people at /docs: one page without scripts, that needs no other host."""

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib import resources
from typing import Any, Final

from delayqueue.web.http import HttpResponse
from delayqueue.web.openapi import Json

STYLE: Final = resources.files("delayqueue.web").joinpath("static", "docs.css").read_text("utf-8")
STYLE_HASH: Final = b64encode(sha256(STYLE.encode()).digest()).decode()
# only this style sheet; no frames
POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Type": "text/html; charset=utf-8",
}


def answer_page(document: Json) -> HttpResponse:
    """The document for people."""
    return HttpResponse(page(document).encode(), PAGE_HEADERS)


def page(document: Json) -> str:
    """The document as HTML."""
    info = document["info"]
    entries = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    links = " ".join(
        f'<a href="#{op["operationId"]}">{escape(path)}</a>' for path, _, op in entries
    )
    sections = "\n".join(_section(document, *entry) for entry in entries)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<title>{escape(info['title'])}</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])}</p>"
        f"<nav>{links}</nav>\n<main>{sections}</main></body></html>\n"
    )


def _section(document: Json, path: str, method: str, operation: Json) -> str:
    parts = [
        f'<section id="{operation["operationId"]}"><h2><b>{method.upper()}</b> {escape(path)}</h2>',
        f"<p>{escape(operation['summary'])}. {escape(operation.get('description', ''))}</p>",
    ]
    if body := operation.get("requestBody"):
        content = body["content"]["application/json"]
        parts += [_fields(document, content["schema"]), _code(content["example"])]
    parts += [_answers(operation["responses"]), "</section>"]
    return "".join(parts)


def _fields(document: Json, schema: Json) -> str:
    model = _resolved(document, schema["anyOf"][0] if "anyOf" in schema else schema)
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code>{' *' if name in model.get('required', ()) else ''}</td>"
        f"<td>{escape(_type(shape))}</td><td>{escape(shape.get('description', ''))}</td></tr>"
        for name, shape in model["properties"].items()
    )
    return f"<table><tr><th>Field (* = required)</th><th>Type</th><th></th></tr>{rows}</table>"


def _resolved(document: Json, schema: Json) -> Json:
    found: Json = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def _type(shape: Json) -> str:
    choices = shape.get("anyOf", [shape])
    names = [choice.get("type", "object") for choice in choices if choice.get("type") != "null"]
    limits = [
        f"{choice.get('minimum', '')} … {choice['maximum']}"
        for choice in choices
        if "maximum" in choice
    ]
    words = [" | ".join(choice["enum"]) for choice in choices if "enum" in choice]
    return ", ".join([" or ".join(names), *limits, *words])


def _answers(responses: Json) -> str:
    parts = []
    for status, response in responses.items():
        content = response.get("content", {}).get("application/json", {})
        values = [example["value"] for example in content.get("examples", {}).values()]
        values += [content["example"]] if "example" in content else []
        parts.append(f"<h3>{status}: {escape(response['description'])}</h3>")
        parts += map(_code, values)
    return "".join(parts)


def _code(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, ensure_ascii=False))}</pre>"
