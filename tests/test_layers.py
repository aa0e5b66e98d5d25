"""Who may import whom: each module of the package is in a layer that says which others it knows."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE: Final = Path(__file__).parent.parent / "delayqueue"
MODULES: Final = sorted(PACKAGE.rglob("*.py"))
# by the first part of a module's name; a new one has to be entered
LAYERS: Final = {
    "ground": {
        *("access", "config", "damage", "errors", "failpoint", "ini", "job", "limit", "log"),
        *("metrics", "mistakes", "notify", "option", "peers", "receipt", "reload", "retry", "said"),
        *("schedule", "sections", "subscriber", "tasks", "threads", "values", "workers"),
        "__version__",
    },
    "store": {"store"},
    "engine": {"engine"},
    "web": {"web"},
    "delivery": {"delivery"},
    "server": {"server", "settings"},  # put the layers together
    "client": {"client"},
    "worker": {"worker", "testing"},
    "cli": {"cli", "__main__"},
    "package": {"__init__"},
}
KNOWS: Final = {
    "ground": set(),
    "store": {"ground"},
    "engine": {"ground", "store"},
    "web": {"ground", "store", "engine"},
    "delivery": {"ground", "store", "engine"},
    "server": {"ground", "store", "engine", "web", "delivery"},
    "client": {"ground"},
    "worker": {"ground", "client"},
    "cli": {"ground", "store", "engine", "web", "delivery", "server", "client", "worker"},
    "package": {"client", "worker"},
}
# a package of others, and who may import it
OTHERS: Final = {"redis": {"store"}, "aiohttp": {"web", "delivery", "client"}}


def imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def layer(name: str) -> str:
    """The layer of what stands in the package under this name."""
    (found,) = (layer for layer, names in LAYERS.items() if name in names)
    return found


def own_layer(module: Path) -> str:
    return layer(module.relative_to(PACKAGE).parts[0].removesuffix(".py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_what_its_layer_knows(module: Path) -> None:
    own = own_layer(module)
    known = KNOWS[own] | {own}
    ours = [name for name in imported(module) if name.startswith("delayqueue.")]
    assert [name for name in ours if layer(name.split(".")[1]) not in known] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_redis_is_known_to_the_store_only_and_http_to_those_who_speak_it(module: Path) -> None:
    own = own_layer(module)
    others = {name.split(".")[0] for name in imported(module)}
    assert [other for other in others if own not in OTHERS.get(other, {own})] == []


def test_imports_go_down_only() -> None:
    """No layer knows one that knows it, also by a detour."""
    heights: dict[str, int] = {}
    while len(heights) < len(KNOWS):
        free = [each for each in KNOWS if each not in heights and KNOWS[each] <= heights.keys()]
        assert free, f"in a circle: {KNOWS.keys() - heights.keys()}"
        heights |= dict.fromkeys(free, len(heights))


def test_a_module_that_is_gone_is_in_no_layer() -> None:
    there = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES}
    assert set().union(*LAYERS.values()) - {"__version__"} == there
