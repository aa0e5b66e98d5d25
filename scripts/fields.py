"""The tables of fields on the pages of the API, from what /openapi.json says of them."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.web.openapi import document, request_name

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

SECTION: Final = re.compile(r"^### (?:POST|GET) (/[\w-]+).*?(?=^### |\Z)", re.MULTILINE | re.DOTALL)
ENGLISH: Final = re.compile(
    r"(?<=^\| Field \| Type \| \|\n\| --- \| --- \| --- \|\n)(?:\|.*\n)*", re.MULTILINE
)
CHINESE: Final = re.compile(
    r"(?<=^\| 字段 \| 类型 \| \|\n\| --- \| --- \| --- \|\n)(?:\|.*\n)*", re.MULTILINE
)
ROW: Final = re.compile(r"^\| (\[?`([\w.]+)`.*?) \| .*? \| ?(.*) \|$", re.MULTILINE)
IN_CHINESE: Final = {
    "string": "字符串",
    "integer": "整数",
    "number": "数字",
    "boolean": "布尔",
    "object": "对象",
    "array": "数组",
    "array of strings": "字符串数组",
    "number or string": "数字或字符串",
}


def with_fields(page: str) -> str:
    """The page with its tables of fields as they are declared now.

    The names stay in their order, with their links, and so do the Chinese texts. Raises ValueError if one is missing.
    """
    return SECTION.sub(_with_fields, page)


def _with_fields(section: re.Match[str]) -> str:
    path, text = section[1], section[0]
    english = ENGLISH.sub(lambda found: "".join(_rows(path, found[0])), text)
    return CHINESE.sub(lambda found: "".join(_chinese_rows(path, found[0])), english)


def _rows(path: str, before: str) -> Iterator[str]:
    fields = described(path)
    named = {name: cell for cell, name, _ in ROW.findall(before) if name in fields}
    for name in named | dict.fromkeys(fields, ""):
        shape, required = fields[name]
        kind = ", ".join([*_type(shape), *["required"] * required])
        yield f"| {named.get(name) or f'`{name}`'} | {kind} | {shape['description']} |\n"


def _chinese_rows(path: str, before: str) -> Iterator[str]:
    fields = described(path)
    for cell, name, text in ROW.findall(before):
        if name in fields:
            shape, required = fields.pop(name)
            kind, *limits = _type(shape)
            limits = [limit.replace(" to ", " 到 ").replace("at most", "最多") for limit in limits]
            unsaid = [limit for limit in limits if limit not in text]
            kinds = "，".join([IN_CHINESE[kind], *unsaid, *["必填"] * required])
            yield f"| {cell} | {kinds} | {text}{' ' * bool(text)}|\n"
    for name in fields:
        raise ValueError(f"add a row for `{name}` to the table of {path}")


@cache
def _schemas() -> Json:
    schemas: Json = document(ENDPOINTS)["components"]["schemas"]
    return schemas


def described(path: str) -> dict[str, tuple[Json, bool]]:
    """The fields of an endpoint's request: their schemas, and whether they are required.

    Those of an object in it are named `retry.delays`, only where the first endpoint takes such an object.
    """
    known = set[str]()
    for endpoint in ENDPOINTS:
        found = dict[str, tuple[Json, bool]]()
        if endpoint.takes is not None:
            found = dict(_fields(request_name(endpoint), "", known))
        if endpoint.path == path:
            return found
    raise ValueError(f"{path}: no such endpoint")


def _fields(model: str, prefix: str, known: set[str]) -> Iterator[tuple[str, tuple[Json, bool]]]:
    schema = _schemas()[model]
    for name, shape in schema["properties"].items():
        yield f"{prefix}{name}", (shape, name in schema.get("required", ()))
        for choice in shape.get("anyOf", ()):
            inner = choice.get("$ref", "").rpartition("/")[2]
            if inner and inner not in known:
                known.add(inner)
                yield from _fields(inner, f"{prefix}{name}.", known)


def _type(shape: Json) -> list[str]:
    """Its type, and the limits of a number or the words of a text that the description does not name."""
    choices = [each for each in _choices(shape) if each.get("type") != "null"]
    kinds = [each.get("type", "object") for each in choices]
    if choices[0].get("items", {}).get("type") == "string":
        kinds = ["array of strings"]
    limits = [
        f"{choice['minimum']} to {choice['maximum']}"
        if "minimum" in choice
        else f"at most {choice['maximum']}"
        for choice in choices
        if "maximum" in choice
    ]
    words = [f"`{word}`" for choice in choices for word in choice.get("enum", ())]
    named = all(word in shape["description"] for word in words)
    return [" or ".join(kinds), *limits, *([] if named else words)]


def _choices(shape: Json) -> Iterator[Json]:
    for each in shape.get("anyOf", ()):
        yield from _choices(each)
    if "anyOf" not in shape:
        yield shape
