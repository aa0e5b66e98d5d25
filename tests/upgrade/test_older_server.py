"""Today's client and command line with a server of an earlier version, which lists without pages."""

import json

import pytest

from delayqueue.client import Client
from tests.earlier import COMMIT, NoSuchCommit, let_run, program_of
from tests.processes import Processes, StoreServer, run_program

NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def older(
    processes: Processes, redis_server: StoreServer, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The URL of a server of the earlier version, with three schedules and three subscribers."""
    try:
        program = program_of(COMMIT, tmp_path_factory.mktemp("earlier") / "program")
    except NoSuchCommit as error:
        pytest.skip(str(error))
    server = let_run(processes.configured("", redis_server), program)
    server.start()
    with Client(server.url) as queue:
        for name in NAMES:
            queue.schedule(name, "t", every="1h")
            queue.subscribe(name, "t", "https://example.com/")
    return server.url


@pytest.mark.parametrize("kind", ["schedules", "subscribers"])
def test_all_are_listed(older: str, kind: str) -> None:
    for limit, found in (((), NAMES), (("--limit", "2"), NAMES[:2])):
        done = run_program("--url", older, kind, "t", *limit, "--json", settings={})
        assert [one["name"] for one in json.loads(done.stdout)] == found
    with Client(older) as queue:
        assert [one.name for one in getattr(queue, kind)()] == NAMES
        page = getattr(queue, f"{kind}_page")("t", limit=2)
    assert ([one.name for one in getattr(page, kind)], page.cursor) == (NAMES, "")
