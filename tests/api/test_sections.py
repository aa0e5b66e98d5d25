"""Sections of config files on one store: a conflict is refused as a whole, and the log says what replaces what."""

import os
import signal
import subprocess
from functools import partial
from typing import Any, Final

import pytest

from tests.api.test_workers import START_S, serving
from tests.api_client import OK, Api, open_api
from tests.clusters import ask
from tests.processes import ProcessError, Processes, QueueServer, StoreServer, run_program
from tests.waiting import until, until_async

URL: Final = "https://example.com/"
OTHERS: Final = "[subscriber new]\ntopic = t\nurl = https://example.com/\n[limit t]\nrate = 1\n"
LISTS: Final = ("/subscribers", "/schedules", "/topics")
TAKEN: Final = "[schedule s]: the store has another schedule of this name, made at run time"


async def declared(api: Api) -> set[str]:
    """What config files declare."""
    return declared_in([(await api.call(path, {})).ok() for path in LISTS])


def declared_in(lists: list[Any]) -> set[str]:
    subscribers, schedules, topics = lists
    named = {
        f"{kind} {one['name']}"
        for kind, ones in (("subscriber", subscribers), ("schedule", schedules))
        for one in ones
        if one["declared"]
    }
    limits = {f"limit {each['topic']}" for each in topics if (each["limit"] or {}).get("declared")}
    return named | limits


def check(server: QueueServer, **settings: object) -> subprocess.CompletedProcess[str]:
    file = str(server.home / "delay-queue.conf")
    return run_program("-c", file, "check", settings={"bind_address": "127.0.0.1:0", **settings})


@pytest.mark.parametrize(
    ("section", "settings", "said"),
    [
        ("[schedule s]\ntopic = t\nevery = 2h\n", {}, TAKEN),
        (
            "[limit u]\nconcurrency = 1\n",
            {"bucket_size": 2},
            "[limit u]: concurrency: must be at least 2",
        ),
    ],
    ids=["a name that is taken", "too little"],
)
async def test_where_one_section_is_refused_nothing_of_the_file_is_declared(
    processes: Processes,
    redis_server: StoreServer,
    section: str,
    settings: dict[str, Any],
    said: str,
) -> None:
    database = redis_server.new_database()
    old = "language = en\n[subscriber old]\ntopic = t\nurl = https://example.com/\n"
    one = processes.configured(old, redis_server, redis__db=database, **settings)
    one.start()
    refused = processes.configured(OTHERS + section, redis_server, redis__db=database, **settings)
    async with open_api(one.url) as api:
        (await api.call("/schedule", {"name": "s", "topic": "t", "every": "1h"})).ok()
        with pytest.raises(ProcessError, match="ended at its start"):
            refused.start()
        assert said in refused.logged()
        assert await declared(api) == {"subscriber old"}

        (one.home / "delay-queue.conf").write_text(OTHERS + section, encoding="utf-8")
        one.send(signal.SIGHUP)
        await until(lambda: f"not reloaded, the previous settings stay: {said}" in one.logged())
        assert await declared(api) == {"subscriber old"}

        checked = check(refused, **redis_server.settings(database), **settings)
        assert (checked.returncode, checked.stderr.count(said)) == (1, 1)


async def test_a_worker_that_dies_is_replaced_and_declares_nothing_anew(
    processes: Processes, redis_server: StoreServer
) -> None:
    database = redis_server.new_database()
    sections = "[schedule s]\ntopic = t\nevery = 1h\n[limit t]\nrate = 1\n"
    one = processes.configured(sections, redis_server, redis__db=database, workers=2)
    one.start()
    await until(lambda: one.logged().count("serving on") == 2, within_s=START_S)
    other = processes.configured("[limit u]\nrate = 1\n", redis_server, redis__db=database)
    other.start()
    async with open_api(other.url) as api:
        (await api.call("/schedule", {"name": "s", "topic": "t", "every": "2h"})).ok()
        os.kill(serving(one)[0], signal.SIGKILL)
        await until(lambda: one.logged().count("serving on") == 3, within_s=START_S)
        assert await declared(api) == {"limit u"}


async def test_sections_that_wait_for_the_store_are_declared_though_all_workers_die_meanwhile(
    processes: Processes,
) -> None:
    """Those of the start, and those of a reload."""
    store = processes.redis("--appendonly", "yes", "--appendfsync", "always")
    store.kill()
    old = f"[subscriber a]\ntopic = t\nurl = {URL}\n[schedule s]\ntopic = t\nevery = 1h\n"
    server = processes.configured(old, None, redis__host=store.address, workers=2)
    server.launch()
    await until(lambda: server.logged().count("serving on") == 2, within_s=START_S)
    await all_die(server)
    store.start()
    async with open_api(server.url) as api:
        await until_async(lambda: has_declared(api, "subscriber a", "schedule s"))

        store.kill()
        (server.home / "delay-queue.conf").write_text("[limit t]\nrate = 1\n", encoding="utf-8")
        server.send(signal.SIGHUP)
        await until(lambda: server.logged().count("reloaded: ") == 3)
        await all_die(server)
        store.start()
        await until_async(lambda: has_declared(api, "limit t"))
    assert server.stop() == 0


async def all_die(server: QueueServer) -> None:
    """Kill all workers, and wait for their replacements."""
    served, workers = server.logged().count("serving on"), serving(server)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    await until(
        lambda: server.logged().count("serving on") == served + len(workers), within_s=START_S
    )


async def has_declared(api: Api, *names: str) -> bool:
    """Whether config files declare just these; each worker notices by itself that the store is back."""
    answers = [await api.call(path, {}) for path in LISTS]
    return {each.code for each in answers} == {OK} and declared_in(
        [each.data for each in answers]
    ) == set(names)


async def test_the_log_says_what_takes_the_place_of_what_another_file_declares(
    processes: Processes, redis_server: StoreServer
) -> None:
    database = redis_server.new_database()
    first = (
        f"[subscriber a]\ntopic = t\nurl = {URL}\n[subscriber b]\ntopic = t\nurl = {URL}\n"
        "[schedule a]\ntopic = t\nevery = 1h\n[limit t]\nrate = 1\n[limit u]\nconcurrency = 5\n"
    )
    second = f"[subscriber a]\ntopic = t\nurl = {URL}a\n[limit t]\nrate = 2\n"
    one, same, other = (
        processes.configured(text, redis_server, redis__db=database)
        for text in (first, first, second)
    )
    for server in (one, same, other):
        server.start()
    async with open_api(other.url) as api:
        assert await declared(api) == {"subscriber a", "limit t"}
    for server in (one, same):
        assert "[" not in server.logged().replace("[::", "")
    for line in (
        "[subscriber a] is replaced: it was declared differently",
        "[subscriber b] is removed: this file does not declare it",
        "[schedule a] is removed: this file does not declare it",
        "[limit u] is removed: this file does not declare it",
        "[limit t] replaces other limits",
    ):
        assert other.logged().count(line) == 1


async def test_sections_are_declared_again_when_the_store_was_emptied(processes: Processes) -> None:
    store = processes.redis()
    server = processes.configured(OTHERS, store, redis__db=0)
    server.start()
    async with open_api(server.url) as api:
        before = await declared(api)
        assert before == {"subscriber new", "limit t"}
        await until(lambda: ask(store, "HEXISTS", "{dq_bucket_1}:layout", "marked"))
        ask(store, "FLUSHALL")
        await until_async(partial(_declares, api, before))


async def _declares(api: Api, wanted: set[str]) -> bool:
    return await declared(api) == wanted
