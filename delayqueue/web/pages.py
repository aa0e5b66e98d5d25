"""/openapi.json, and the same for people at /docs: one page without scripts, that needs no other host."""

import json
import re
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
CODE: Final = re.compile("`([^`]+)`")
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
    info, paths = document["info"], document["paths"]
    sections = "\n".join(_section(document, path) for path in paths)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<title>{escape(info['title'])}</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{_prose(info['description'])}</p>"
        f"<nav>{''.join(_links(document, tag) for tag in document['tags'])}</nav>\n"
        f"<main>{sections}\n{_refusals(document['components']['responses'])}</main></body></html>\n"
    )


def _links(document: Json, tag: Json) -> str:
    """What a group is about, and its endpoints."""
    links = " ".join(
        f'<a href="#{_anchor(path)}">{escape(path)}</a>'
        for path, methods in document["paths"].items()
        if tag["name"] in next(iter(methods.values()))["tags"]
    )
    return f"<p>{_prose(tag['description'])} {links}</p>"


def _anchor(path: str) -> str:
    return escape(path.strip("/"))


def _section(document: Json, path: str) -> str:
    """An endpoint: all its methods do the same; one with a body may take more."""
    methods = document["paths"][path]
    operation = max(methods.values(), key=lambda each: "requestBody" in each)
    parts = [
        f'<section id="{_anchor(path)}"><h2><b>{", ".join(methods).upper()}</b> {escape(path)}</h2>',
        f"<p>{_prose(_sentence(operation['summary']))} {_prose(operation.get('description', ''))}</p>",
        f"<p>Stability: {escape(operation['x-stability'])}.</p>",
    ]
    if body := operation.get("requestBody"):
        content = body["content"]["application/json"]
        parts += [_fields(document, content["schema"]), _code(content["example"])]
    for status, response in operation["responses"].items():
        if "$ref" not in response:
            parts += [f"<h3>{status}: {_prose(response['description'])}</h3>", _examples(response)]
    others = " ".join(
        f'<a href="#{_name(response)}">{status}</a>'
        for status, response in operation["responses"].items()
        if "$ref" in response
    )
    parts.append(f"<p>Other answers: {others}</p></section>" if others else "</section>")
    return "".join(parts)


def _refusals(responses: Json) -> str:
    """The answers that many endpoints share."""
    return "\n".join(
        f'<section id="{name}"><h2>{escape(response["description"])}</h2>{_examples(response)}</section>'
        for name, response in responses.items()
    )


def _sentence(summary: str) -> str:
    return f"{summary[:1].upper()}{summary[1:]}."


def _prose(text: str) -> str:
    """Text with code between backticks, as HTML."""
    return CODE.sub(r"<code>\1</code>", escape(text))


def _name(reference: Json) -> str:
    """The name of what a reference leads to."""
    return str(reference["$ref"]).rpartition("/")[2]


def _fields(document: Json, schema: Json) -> str:
    model = _resolved(document, schema)
    if "anyOf" in model:  # one, or an array
        model = _resolved(document, model["anyOf"][0])
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code>{' *' if name in model.get('required', ()) else ''}</td>"
        f"<td>{escape(_type(shape))}</td><td>{_prose(shape.get('description', ''))}</td></tr>"
        for name, shape in model["properties"].items()
    )
    return f"<table><tr><th>Field (* = required)</th><th>Type</th><th></th></tr>{rows}</table>"


def _resolved(document: Json, schema: Json) -> Json:
    found: Json = document["components"]["schemas"][_name(schema)]
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


def _examples(response: Json) -> str:
    content = response.get("content", {}).get("application/json", {})
    values = [example["value"] for example in content.get("examples", {}).values()]
    values += [content["example"]] if "example" in content else []
    return "".join(map(_code, values))


def _code(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, ensure_ascii=False))}</pre>"
