"""Who may import whom: each module of the package is in a layer that says which others it knows."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parent.parent / "delayqueue"
MODULES: Final = sorted(PACKAGE.rglob("*.py"))
# the rooms of the package: the modules in each, by the beginning of their names; the longest one counts
ROOMS: Final = {
    "ground": ("errors", "keepalive", "log", "tasks", "threads", "__version__"),
    "domain": ("domain",),  # what a delay queue is about, without IO
    "answers": ("answers",),  # what the server answers and the Python client reads
    "metrics": ("metrics",),
    "keys": ("store.keys",),  # the names of all keys: no list of ready jobs may have one of them
    "config": ("config",),
    # Redis servers: which there are, calls to them, what they promise
    "servers": (
        *("store.server", "store.connection", "store.servers", "store.connect", "store.embedded"),
        *("store.parent_death", "store.health", "store.durability", "store.permissions"),
    ),
    "scripts": ("store.scripts",),
    "types": ("store.types",),  # what the store takes and returns
    "store": ("store",),  # its buckets, and the verbs on jobs of any of them
    "original": ("store.original",),  # what the original keeps, to import it
    "engine": ("engine",),
    "net": ("net",),  # connections, whatever is spoken on them
    "web": ("web",),
    "beanstalk": ("beanstalk",),
    "delivery": ("delivery",),
    "server": ("server",),  # puts the layers together
    "client": ("client",),
    "worker": ("worker", "testing"),
    "relay": ("relay", "outbox"),
    "contrib": ("contrib",),  # for programs that use other libraries
    "cli": ("cli", "__main__"),
    "package": ("",),
}
BASE: Final = {"ground", "domain", "metrics", "keys", "config", "types"}
BELOW_STORE: Final = BASE | {"answers", "servers", "scripts"}
KNOWS: Final[dict[str, set[str]]] = {
    "ground": set(),
    "domain": {"ground"},
    "metrics": {"ground", "domain"},
    "answers": {"domain"},
    "keys": set(),
    "config": {"ground", "domain", "keys"},
    "types": {"ground", "domain", "answers"},
    "scripts": {"domain", "ground"},
    "servers": BASE | {"net", "scripts"},
    "store": BELOW_STORE,
    "original": BASE | {"servers"},
    "engine": BELOW_STORE | {"store", "original"},
    "net": {"ground", "metrics", "config"},
    "web": BASE | {"answers", "net", "store", "engine"},
    "beanstalk": BASE | {"net", "store", "engine"},
    "delivery": BASE | {"answers", "store", "engine"},
    "server": BELOW_STORE | {"store", "engine", "net", "web", "beanstalk", "delivery"},
    "client": {"ground", "domain", "answers"},
    "worker": {"ground", "domain", "answers", "client"},
    "relay": {"ground", "domain", "answers", "client"},
    "contrib": {"domain", "client", "worker"},
    "cli": BELOW_STORE
    | {"store", "original", "engine", "web", "beanstalk", "delivery", "server", "client", "worker"}
    | {"relay"},
    "package": {"client", "worker"},
}
# a package of others, and who may import it
OTHERS: Final = {
    "redis": {"servers", "scripts", "store", "original"},
    "aiohttp": {"web", "delivery"},
    "opentelemetry": {"client", "server", "web", "delivery"},
    "celery": {"contrib"},
    "kombu": {"contrib"},
    "psycopg": {"relay"},
    "pymysql": {"relay"},
}

# classes whose name is in two rooms, and why
SHARED_NAMES: Final = dict.fromkeys(
    ("Job", "Schedule", "Subscriber"), "one inside, with all that the server knows, one outside"
)


def imported(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def room(name: str) -> str:
    """The room of the module with this name."""
    names = {prefix: room for room, prefixes in ROOMS.items() for prefix in prefixes}
    here = [prefix for prefix in names if prefix == name or name.startswith(f"{prefix}.")]
    return names[max(here, key=len)]


def own_room(module: Path) -> str:
    name = ".".join(module.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__")
    return room(name.removesuffix("."))


def test_a_module_imports_what_its_room_knows() -> None:
    assert [
        f"{module.relative_to(PACKAGE)} imports {name}"
        for module in MODULES
        for name in imported(module)
        if name.startswith("delayqueue.")
        and room(name.partition(".")[2]) not in KNOWS[own_room(module)] | {own_room(module)}
    ] == []


def test_redis_is_known_to_the_store_only_and_http_to_those_who_speak_it() -> None:
    assert [
        f"{module.relative_to(PACKAGE)} imports {name}"
        for module in MODULES
        for name in imported(module)
        if (own := own_room(module)) not in OTHERS.get(name.split(".")[0], {own})
    ] == []


def test_imports_go_down_only() -> None:
    """No room knows one that knows it, directly or by a detour."""
    heights: dict[str, int] = {}
    while len(heights) < len(KNOWS):
        free = [each for each in KNOWS if each not in heights and KNOWS[each] <= heights.keys()]
        assert free, f"in a circle: {KNOWS.keys() - heights.keys()}"
        heights |= dict.fromkeys(free, len(heights))


def test_every_module_stands_in_a_room_and_no_room_is_empty() -> None:
    assert {own_room(module) for module in MODULES} == ROOMS.keys()


def test_at_most_eight_files_stand_beside_the_rooms() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 8


def test_the_modules_of_the_client_do_not_import_each_other_in_a_circle() -> None:
    """Not even for their types: what both clients share knows neither."""
    knows = {
        path.stem: {
            name.split(".")[2] for name in imported(path) if name.startswith("delayqueue.client.")
        }
        for path in (PACKAGE / "client").glob("[!_]*.py")
    }
    assert list(TopologicalSorter(knows).static_order())


def test_a_class_has_a_name_of_its_own() -> None:
    homes: dict[str, list[str]] = {}
    for module in MODULES:
        for node in ast.parse(module.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(module.relative_to(PACKAGE)))
    shared = {name: found for name, found in homes.items() if len(found) > 1}
    assert {name: shared[name] for name in shared.keys() - SHARED_NAMES.keys()} == {}
