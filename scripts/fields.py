"""The tables of fields on the pages of the API, from what /openapi.json says of them."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from delayqueue.domain.push_fields import WORDS
from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.web.openapi import document, request_name
from scripts.links import CHINESE as TWIN
from scripts.links import in_chinese

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
LINK: Final = re.compile(r"(?<=\]\()[^)]+")
TYPES: Final = {
    "string": "字符串",
    "integer": "整数",
    "number": "数字",
    "boolean": "布尔",
    "object": "对象",
    "array": "数组",
    "array of strings": "字符串数组",
    "number or string": "数字或字符串",
}
DECLARED: Final = {words.en: words.zh for words in WORDS.values()}
TRANSLATED: Final = Path(__file__).with_name("chinese.json")


@cache
def translations() -> dict[str, str]:
    """The Chinese of what the package says of fields, settings, endpoints, verbs and methods, by the English."""
    found: dict[str, str] = json.loads(TRANSLATED.read_text("utf-8"))
    return found


def chinese(text: str) -> str:
    """What the declaration or chinese.json has for a text, or the text until somebody translates it."""
    return DECLARED.get(text) or translations().get(text, text)


def with_fields(page: Path) -> str:
    """The page with its tables of fields as they are declared now.

    On an English page the names stay in their order, with their links. A Chinese page has the rows of the English one.
    """
    text = page.read_text("utf-8")
    if not page.name.endswith(TWIN):
        return SECTION.sub(_with_fields, text)
    english = page.with_name(page.name.replace(TWIN, ".md"))
    sections = {found[1]: found[0] for found in SECTION.finditer(with_fields(english))}

    def with_rows(section: re.Match[str]) -> str:
        rows = "".join(
            _chinese_row(section[1], english, *found)
            for table in ENGLISH.findall(sections.get(section[1], ""))
            for found in ROW.findall(table)
        )
        return CHINESE.sub(lambda _: rows, section[0])

    return SECTION.sub(with_rows, text)


def _with_fields(section: re.Match[str]) -> str:
    return ENGLISH.sub(lambda found: "".join(_rows(section[1], found[0])), section[0])


def _rows(path: str, before: str) -> Iterator[str]:
    fields = described(path)
    named = {name: cell for cell, name, _ in ROW.findall(before) if name in fields}
    for name in named | dict.fromkeys(fields, ""):
        shape, required = fields[name]
        kind = ", ".join([*_type(shape), *["required"] * required])
        yield f"| {named.get(name) or f'`{name}`'} | {kind} | {shape['description']} |\n"


def _chinese_row(path: str, english: Path, cell: str, name: str, text: str) -> str:
    shape, required = described(path)[name]
    kind, *words = _type(shape)
    limits = [word.replace(" to ", " 到 ").replace("at most", "最多") for word in words]
    kinds = "，".join([TYPES[kind], *limits, *["必填"] * required])
    linked = LINK.sub(lambda link: in_chinese(english, link[0]), cell)
    return f"| {linked} | {kinds} | {chinese(text)} |\n"


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
