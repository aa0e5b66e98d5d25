"""Imports go down only: web and delivery -> engine -> store -> ground; Redis and HTTP stay in their layers."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE: Final = Path(__file__).parent.parent / "delayqueue"
LAYERS: Final = {"store": 1, "engine": 2, "web": 3, "delivery": 3}  # of height 0 is the ground
COMPOSITION: Final = {"server.py", "settings.py", "cli", "__main__.py", "workers.py"}
MODULES: Final = sorted(PACKAGE.rglob("*.py"))


def imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)


def layer(dotted: str) -> str:
    """The folder of a module of ours, "" for the ground."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else ""


def own_layer(module: Path) -> str:
    folder = module.relative_to(PACKAGE).parts[0]
    return folder if folder in LAYERS else ""


def composes(module: Path) -> bool:
    """Whether it puts the layers together."""
    return module.relative_to(PACKAGE).parts[0] in COMPOSITION


def may_import(module: str, other: str) -> bool:
    """Layers of one height do not know each other."""
    return module == other or LAYERS.get(module, 0) > LAYERS.get(other, 0)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_its_own_layer_and_those_below(module: Path) -> None:
    if composes(module):
        return
    ours = [name for name in imported(module) if name.startswith("delayqueue")]
    assert [name for name in ours if not may_import(own_layer(module), layer(name))] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_redis_is_known_to_the_store_and_http_to_the_web(module: Path) -> None:
    names = set(imported(module))
    if own_layer(module) != "store" and not composes(module):
        assert not [name for name in names if name.split(".")[0] == "redis"]
    if own_layer(module) != "web" and not composes(module):
        assert not [name for name in names if name.startswith("aiohttp.web")]
