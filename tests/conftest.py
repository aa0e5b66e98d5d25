"""What all tests share: real store servers, topics, and the logs of real processes beside a failure."""

import gc
import secrets
import shutil
import signal
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.clusters import UNHURRIED, UNHURRIED_MS, StoreCluster, WatchedStore
from tests.processes import WITHOUT_FUNCTIONS, Processes, StoreServer
from tests.store.clients import remembered_links

TESTS: Final = Path(__file__).parent
PROCESSES: Final = pytest.StashKey[list[Processes]]()
STARTED: Final = pytest.StashKey[float]()

# a shell has its background jobs ignore Ctrl-C, and the programs that they start
signal.signal(signal.SIGINT, signal.default_int_handler)

# folders and files that take half a minute or more: a processor that begins with one last would keep the others waiting
LONG: Final = {
    *("browser", "relay", "client", "upgrade", "test_crashes.py", "test_reloading.py"),
    "test_reload_workers.py",
    *("test_moves.py", "test_replication.py", "test_servers.py"),
}


# folders whose files one processor runs: to start Chromium, or MariaDB and PostgreSQL, takes seconds
TOGETHER: Final = ("tests/browser/", "tests/relay/")

# what --quick leaves out, folders and files of tests/, and why
LEFT_OUT: Final = {
    "browser": "Chromium",
    "php": "PHP, Composer",
    "docs": "PHP, Node.js, Go, curl, nginx, MkDocs",
    "relay": "MariaDB, PostgreSQL",
    "beanstalk": "beanstalkd, PHP, Ruby, Go",
    "client/test_celery.py": "Celery",
    "client/test_types.py": "Pyright",
    **dict.fromkeys(("delivery", "importer", "tools", "upgrade"), "time"),
    **{
        f"{folder}/test_{name}.py": "time"
        for folder, names in {
            "api": "answer_bounds crashes eviction lost_shard notify outage reload_workers reloading replicas "
            "connections end_waits metrics openapi seen_workers stats two_servers unwell_stores walk",
            "client": "due_times light repeats transport worker worker_processes",
            "engine": "history moves paging rebalance",
            "store": "embedded inspect pieces replication servers wheel",
        }.items()
        for name in names.split()
    },
}


class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """Gives a file to one processor, or a folder of TOGETHER."""

    def _split_scope(self, nodeid: str) -> str:
        return next(filter(nodeid.startswith, TOGETHER), super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    return Scheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def _links_end_with_clients() -> Iterator[None]:
    with remembered_links():
        yield


@pytest.fixture(scope="session")
def lasting_processes(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Processes]:
    """Makes real processes that end with the test run, for fixtures that many modules share."""
    yield from _made(tmp_path_factory, pytestconfig)


@pytest.fixture(scope="module")
def processes(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Processes]:
    """Makes real processes that end with the module: even an idle server takes processor time."""
    yield from _made(tmp_path_factory, pytestconfig)


def _made(factory: pytest.TempPathFactory, config: pytest.Config) -> Iterator[Processes]:
    made = Processes(factory.mktemp("processes"))
    running = config.stash.setdefault(PROCESSES, [])
    running.append(made)
    yield made
    running.remove(made)
    made.close()


@pytest.fixture(scope="session")
def redis_server(lasting_processes: Processes) -> StoreServer:
    """A Redis server that belongs to this test run. Take a `new_database()` of it."""
    return lasting_processes.redis()


@pytest.fixture(scope="session")
def redis_without_functions_server(lasting_processes: Processes) -> StoreServer:
    """A Redis server on which the verbs run as scripts. Take a `new_database()` of it."""
    return lasting_processes.redis(*WITHOUT_FUNCTIONS)


@pytest.fixture(scope="session")
def valkey_server(lasting_processes: Processes) -> StoreServer:
    """A Valkey server that belongs to this test run. Take a `new_database()` of it."""
    return lasting_processes.valkey()


@pytest.fixture(scope="session")
def cluster(lasting_processes: Processes) -> StoreCluster:
    """A Redis Cluster that belongs to this test run."""
    return StoreCluster(lasting_processes, *UNHURRIED)


@pytest.fixture(scope="session")
def watched_store(lasting_processes: Processes) -> WatchedStore:
    """A master with a replica and Sentinels that belong to this test run."""
    return WatchedStore(lasting_processes, down_after_ms=UNHURRIED_MS)


@pytest.fixture
def topic() -> str:
    """A topic that no other test uses."""
    return f"topic-{secrets.token_hex(4)}"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every-store",
        action="store_true",
        help="run all tests over Sentinel and Cluster, and with the page in every look, too",
    )
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out the tests that need more than Python, or long; say at the end which",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --quick, what is left out is not even imported."""
    name = collection_path.relative_to(TESTS).as_posix() if TESTS in collection_path.parents else ""
    return True if config.getoption("quick") and name in LEFT_OUT else None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say, after --quick, what did not run, and what would run it."""
    if not config.getoption("quick"):
        return
    line = terminalreporter.write_line
    terminalreporter.section("not run by make test")
    if shutil.which("redis-server") is None:
        line("redis-server is not installed: its tests ran on the embedded store's Valkey")
    skipped = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.getreports("skipped")
    )
    for reason, count in sorted(skipped.items()):
        line(f"{count} skipped: {reason}")
    for reason in dict.fromkeys(LEFT_OUT.values()):
        names = " ".join(f"tests/{name}" for name, why in LEFT_OUT.items() if why == reason)
        line(
            f"left out, as they take long: {names}"
            if reason == "time"
            else f"need {reason}: {names}"
        )
    line("make test-all installs what is missing, and runs all of them")


def pytest_configure() -> None:
    """Collect the tests without the garbage collector, which would go through all of them again and again."""
    gc.disable()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Then let it work, and hide them from it."""
    collected = yield
    gc.collect()
    gc.freeze()
    gc.enable()
    return collected


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None]:
    """Make no tests of parameters that are not due only to deselect them: there are more of them than of the others."""
    yield
    if not metafunc.config.getoption("every_store"):
        calls = metafunc._calls
        # of none that is due, one stays for its mark: without parameters, a test has no fixtures either
        metafunc._calls = [each for each in calls if _are_due(metafunc, each.marks)] or calls[:1]


@pytest.hookimpl(trylast=True)  # pytest itself sorts them by their fixtures
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that are not due run with --every-store only; long files come first."""
    if not config.getoption("every_store"):
        seldom = [item for item in items if not _is_due(item)]
        config.hook.pytest_deselected(items=seldom)
        items[:] = [item for item in items if _is_due(item)]
    items.sort(key=lambda item: not LONG.intersection(item.path.parts))


def _is_due(item: pytest.Item) -> bool:
    return _runs(item.config, item.path.name, item.iter_markers())


def _are_due(metafunc: pytest.Metafunc, marks: Sequence[pytest.Mark]) -> bool:
    return _runs(metafunc.config, metafunc.definition.path.name, marks)


def _runs(config: pytest.Config, module: str, marks: Iterable[pytest.Mark]) -> bool:
    """Whether these marks let a test of the module run without --every-store."""
    if config.getoption("quick"):
        return not any(mark.name in {"seldom", "slow"} for mark in marks)
    return all(module in mark.args for mark in marks if mark.name == "seldom")


def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[STARTED] = time.time()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show, beside a failure, what the processes logged during the test."""
    report = yield
    if report.failed:
        report.sections += [
            (f"log of {name}", log)
            for processes in item.config.stash.get(PROCESSES, [])
            for name, log in processes.logs_since(item.stash[STARTED])
        ]
    return report
