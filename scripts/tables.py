"""The tables between marks on the pages, from the declarations in the package, or from another page."""

from __future__ import annotations

import re
from inspect import Parameter, cleandoc, signature
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from delayqueue.cli.remote import REMOTE
from delayqueue.client.api_request import verb
from delayqueue.client.verbs import Verbs
from delayqueue.config.config import OPTIONS
from delayqueue.domain.access import Role
from delayqueue.web.endpoint import Stability
from delayqueue.web.endpoints import ENDPOINTS
from scripts.fields import chinese
from scripts.links import CHINESE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from delayqueue.cli.subcommand import Subcommand
    from delayqueue.web.endpoint import Endpoint

REPOSITORY: Final = Path(__file__).parents[1]
UNITS: Final = {"s": "秒", "ms": "毫秒", "bytes": "字节", "": ""}
STABILITIES: Final = {Stability.STABLE: "稳定", Stability.SETTLING: "调整中"}
HEADING: Final = re.compile(r"^### (.*)$", re.MULTILINE)


def table(name: str, page: Path, before: str) -> str:
    """The lines between the marks of this name, instead of those before. Raises KeyError if there is no such table."""
    return "".join(f"{line}\n" for line in TABLES[name](page, before))


def settings(page: Path, before: str) -> Iterator[str]:
    """The same settings in the same order, as they are declared now. Raises ValueError if one is not."""
    is_chinese = page.name.endswith(CHINESE)
    yield "| 名称 | 默认值 | |" if is_chinese else "| Key | Default | |"
    yield "| --- | --- | --- |"
    for key in re.findall(r"^\| `([\w.]+)` \|", before, re.MULTILINE):
        if key not in OPTIONS:
            raise ValueError(f"remove the row of `{key}`")
        option = OPTIONS[key]
        unit = UNITS[option.unit] if is_chinese else option.unit
        default = f"`{option.default}` {unit}".strip() if option.default else ""
        yield f"| `{key}` | {default} | {chinese(option.help) if is_chinese else option.help} |"


def endpoints(page: Path, _before: str) -> Iterator[str]:
    """Each endpoint, what it does, the roles that may call it and its stability.

    Raises ValueError if the page has no section on one.
    """
    is_chinese = page.name.endswith(CHINESE)
    yield "| 接口 | | 角色 | |" if is_chinese else "| Endpoint | | Role | |"
    yield "| --- | --- | --- | --- |"
    known = anchors(page)
    for one in ENDPOINTS:
        if one.path not in known:
            raise ValueError(f"add a section `### {one.methods[0]} {one.path}`")
        summary = chinese(one.summary) if is_chinese else one.summary
        stability = STABILITIES[one.stability] if is_chinese else one.stability
        allowed = roles(one, "人人可用" if is_chinese else "open to all")
        yield f"| [{one.path}](#{known[one.path]}) | {summary} | {allowed} | {stability} |"


def anchors(api_page: Path) -> dict[str, str]:
    """The section of each endpoint, by its path."""
    return {
        path: re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")
        for heading in HEADING.findall(api_page.read_text("utf-8"))
        for path in re.findall(r"\b(?:GET|POST) (/[\w.-]+)", heading)
    }


def roles(one: Endpoint, everybody: str) -> str:
    """The roles that may call an endpoint."""
    if one.roles is None:
        return everybody
    return ", ".join(role for role in Role if role in one.roles)


def commands(page: Path, _before: str) -> Iterator[str]:
    """The verbs of the command line, and what each does."""
    is_chinese = page.name.endswith(CHINESE)
    yield "| 命令 | |" if is_chinese else "| Verb | |"
    yield "| --- | --- |"
    for one in chain(*REMOTE.values()):
        yield f"| `{usage(one)}` | {chinese(one.help) if is_chinese else one.help} |"


def usage(command: Subcommand) -> str:
    """The verb and its arguments without the options, as a usage line shows them."""
    forms = {None: " {}", "?": " [{}]", "+": " {}...", "*": " [{}...]"}
    return command.name + "".join(
        forms[one.options.get("nargs")].format(one.options["metavar"])
        for one in command.arguments
        if not one.flags[0].startswith("-")
    )


def methods(page: Path, _before: str) -> Iterator[str]:
    """The methods of the Python clients, what each does, and what it returns."""
    is_chinese = page.name.endswith(CHINESE)
    yield "| 方法 | | 返回 |" if is_chinese else "| Method | | Returns |"
    yield "| --- | --- | --- |"
    for name, build, said in client_methods():
        returns = build.__annotations__["return"].removeprefix("ApiRequest[").removesuffix("]")
        called = f"{name}({', '.join(arguments(build))})"
        told = chinese(said) if is_chinese else said
        yield f"| `{called}` | {told} | `{returns.replace('|', 'or')}` |"


def client_methods() -> Iterator[tuple[str, Callable[..., object], str]]:
    """Each method of the Python clients: its name, what builds its request, the first line of its docstring."""
    for name, one in chain.from_iterable(vars(family).items() for family in Verbs.__mro__):
        if isinstance(one, verb):
            yield name, one.build, cleandoc(one.build.__doc__ or "").partition("\n")[0]


def arguments(method: Callable[..., object]) -> Iterator[str]:
    """Its arguments: `name=` if it is named or may be left out, with its default if that is a number."""
    for one in [*signature(method).parameters.values()][1:]:
        if one.kind is Parameter.VAR_POSITIONAL:
            yield f"*{one.name}"
        elif isinstance(one.default, int):
            yield f"{one.name}={one.default}"
        else:
            needed = one.default is Parameter.empty and one.kind is not Parameter.KEYWORD_ONLY
            yield one.name if needed else f"{one.name}="


def comparison(page: Path, _before: str) -> Iterator[str]:
    """The first table of docs/performance.md, which compares the servers."""
    measured = f"performance{CHINESE if page.name.endswith(CHINESE) else '.md'}"
    text = (REPOSITORY / "docs" / measured).read_text("utf-8")
    first, *_ = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    yield from first.splitlines()


TABLES: Final[dict[str, Callable[[Path, str], Iterator[str]]]] = {
    "settings": settings,
    "endpoints": endpoints,
    "commands": commands,
    "methods": methods,
    "comparison": comparison,
}
