"""Python handlers of a config file: plain ones, async ones, some that fail, some that are not callable."""

from pathlib import Path
from typing import Final

import pytest

from delayqueue.config.loading import load
from delayqueue.config.startup import StartupError
from delayqueue.delivery.callables import load_all
from tests.api_client import Api, open_api
from tests.processes import ProcessError, Processes, QueueServer, StoreServer
from tests.waiting import until, until_async

from .conftest import Shop, results
from .receiver import Receiver

MODULE: Final = "tests.delivery.handlers"
CONFIG: Final = f"""
language = en
webhook_allow = 127.0.0.1/32

[subscriber invoice/plain]
topic = invoice
order = 0
handler = {MODULE}:plain

[subscriber invoice/async]
topic = invoice
order = 10
handler = {MODULE}:asynchronous

[subscriber invoice/object]
topic = invoice
order = 20
handler = {MODULE}:instance

[subscriber first]
topic = handed-on
handler = {MODULE}:plain

[subscriber second]
topic = handed-on
order = 10
handler = {MODULE}:reads_results

[subscriber shaky]
topic = shaky
handler = {MODULE}:fails_at_first
retry = 50ms, 1h

[subscriber leaves]
topic = leaves
handler = {MODULE}:leaves
retry = 0s

[subscriber hangs]
topic = hangs
handler = {MODULE}:hangs
timeout = 0.2
retry = 1h

[subscriber blocks]
topic = blocks
handler = {MODULE}:blocks
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "notes"


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


async def test_plain_async_and_object_handlers_run_in_order(
    own_api: Api, receiver: Receiver, file: Path
) -> None:
    shop = Shop(own_api, receiver, "invoice")
    await shop.push(body=str(file))
    job = await shop.becomes("finished")
    assert lines(file) == [
        "plain invoice-job 1 False",  # not in the loop's thread
        "async invoice-job",
        "object invoice-job",
    ]
    assert results(job) == {
        "plain": ("succeeded", 1, "wrote invoice"),
        "async": ("succeeded", 1, ""),
        "object": ("succeeded", 1, "5"),
    }


async def test_a_handler_is_given_what_the_one_before_returned(
    own_api: Api, receiver: Receiver, file: Path
) -> None:
    shop = Shop(own_api, receiver, "handed-on")
    await shop.push(body=str(file))
    job = await shop.becomes("finished")
    assert results(job)["second"] == ("succeeded", 1, "first wrote handed-on")


async def test_an_exception_is_a_failure_with_its_text(
    own_api: Api, receiver: Receiver, file: Path
) -> None:
    shop = Shop(own_api, receiver, "shaky")
    await shop.push(body=str(file))
    job = await shop.becomes("finished")
    assert lines(file) == ["fails 1", "fails 2"]
    assert job["attempts"][0]["message"] == "shaky: LookupError: no file for shaky-job"


async def test_a_handler_that_exits_has_failed_and_the_server_lives(
    own_api: Api, receiver: Receiver
) -> None:
    shop = Shop(own_api, receiver, "leaves")
    await shop.push()
    job = await shop.becomes("buried")
    assert results(job) == {"leaves": ("failed", 2, "SystemExit: leaves at leaves-job")}


async def test_an_async_handler_is_stopped_at_its_timeout(
    own_api: Api, receiver: Receiver, file: Path
) -> None:
    shop = Shop(own_api, receiver, "hangs")
    await shop.push(body=str(file))
    job = await shop.becomes("delayed")
    assert results(job) == {"hangs": ("failed", 1, "timeout: 0.2 s")}


async def test_subscribers_of_the_file_are_shown_and_not_dropped_at_run_time(own_api: Api) -> None:
    (one,) = (await own_api.call("/subscribers", {"topic": "shaky"})).ok()
    assert one == {
        "name": "shaky",
        "topic": "shaky",
        "order": 0,
        "url": "",
        "method": "POST",
        "headers": {},
        "handler": f"{MODULE}:fails_at_first",
        "timeout": 30.0,
        "retry": [0.05, 3600.0],
        "concurrency": 10,
        "signed": False,
        "declared": True,
        "expect": "",
        "on_failure": "bury",
        "payload": "body",
        "paused": None,
    }
    message = (await own_api.call("/unsubscribe", {"name": "shaky"})).refused(3)
    assert message.startswith("shaky: comes from a config file")
    taken = {"name": "shaky", "topic": "x", "url": "http://h/", "if_exists": "replace"}
    assert "shaky: another subscriber" in (await own_api.call("/subscribe", taken)).refused(5)


async def test_a_thread_that_blocks_does_not_keep_the_server_from_stopping(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, file: Path
) -> None:
    server = processes.configured(CONFIG, redis_server)
    server.start()
    async with open_api(server.url) as api:
        await Shop(api, receiver, "blocks").push(body=str(file))
        await until(lambda: lines(file) == ["blocks"])
    assert server.stop() == 0


async def test_a_server_leaves_topics_alone_whose_handlers_it_does_not_have(
    processes: Processes,
    redis_server: StoreServer,
    own_server: QueueServer,
    receiver: Receiver,
    file: Path,
) -> None:
    """A server's own config file decides which code runs, not the store."""
    database = redis_server.new_database()
    config = f"[subscriber s]\ntopic = t\nhandler = {MODULE}:plain\n"
    first = processes.configured(config, redis_server, redis__db=database)
    first.start()
    first.kill()
    other = processes.server(redis_server, redis__db=database)
    await until(lambda: "topic 't' is left to other servers" in other.logged())
    async with open_api(other.url) as api:
        shop = Shop(api, receiver, "t")
        await shop.push(body=str(file))
        first.start()
        await shop.becomes("finished")
    assert lines(file) == ["plain t-job 1 False"]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            "[subscriber s]\ntopic = t\nhandler = no.such:thing",
            "FILE:1: [subscriber s]: handler = no.such:thing: cannot be imported: ModuleNotFoundError",
        ),
        (
            f"\n[subscriber s]\ntopic = t\nhandler = {MODULE}:nothing",
            f"FILE:2: [subscriber s]: handler = {MODULE}:nothing: cannot be imported: AttributeError: ",
        ),
        (
            f"[subscriber s]\ntopic = t\nhandler = {MODULE}:NO_FUNCTION",
            f"FILE:1: [subscriber s]: handler = {MODULE}:NO_FUNCTION: is a int and cannot be called",
        ),
    ],
)
def test_a_handler_that_is_none_is_named_with_its_section(
    tmp_path: Path, section: str, message: str
) -> None:
    path = tmp_path / "conf"
    path.write_text(section, encoding="utf-8")
    sections = load(path, {}).sections
    assert sections
    with pytest.raises(StartupError) as caught:
        load_all(sections.subscribers)
    assert str(caught.value).replace(str(path), "FILE").startswith(message)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("handler = no.such:thing", "cannot be imported"),
        ("url = http://10.0.0.1/", "10.0.0.1 is not a public address and webhook_allow"),
    ],
)
def test_whom_it_cannot_call_keeps_the_server_from_starting(
    processes: Processes, redis_server: StoreServer, option: str, message: str
) -> None:
    server = processes.configured(f"[subscriber s]\ntopic = t\n{option}", redis_server)
    with pytest.raises(ProcessError):
        server.start()
    assert f"[subscriber s]: {option}: {message}" in server.logged()


async def test_the_file_and_the_run_time_do_not_replace_each_other(
    processes: Processes, redis_server: StoreServer
) -> None:
    database = redis_server.new_database()
    running = processes.server(redis_server, redis__db=database)
    async with open_api(running.url) as api:
        (await api.call("/subscribe", {"name": "s", "topic": "t", "url": "http://h/"})).ok()
        late = processes.configured(
            "[subscriber s]\ntopic = t\nurl = http://h/\n", redis_server, redis__db=database
        )
        with pytest.raises(ProcessError):
            late.start()
        assert "[subscriber s]: the store has another subscriber of this name" in late.logged()
        (await api.call("/unsubscribe", {"name": "s"})).ok()
        late.start()

        async def is_declared() -> bool:
            found = (await api.call("/subscribers", {})).ok()
            return [one["declared"] for one in found] == [True]

        await until_async(is_declared)
