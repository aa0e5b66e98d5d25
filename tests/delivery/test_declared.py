"""Subscribers of a config file: what is refused, beside those of the run time, and Python functions of old."""

from pathlib import Path
from typing import Final

import pytest

from tests.api_client import Api, Json, open_api
from tests.earlier import BEFORE_NAMES, NoSuchCommit, let_run, program_of
from tests.processes import ProcessError, Processes, StoreServer
from tests.waiting import until

from .conftest import Shop
from .receiver import Receiver

URL: Final = "http://h.example/x"
CONFIG: Final = f"""
language = en

[subscriber shaky]
topic = shaky
url = {URL}
retry = 50ms, 1h
"""
FUNCTION: Final = "[subscriber s]\ntopic = t\nhandler = shop:book\n"
MODULE: Final = """
from pathlib import Path

def book(job):
    Path(job.body).write_text(job.id)
"""


async def test_subscribers_of_the_file_are_shown_and_not_dropped_at_run_time(own_api: Api) -> None:
    (one,) = (await own_api.call("/subscribers", {"topic": "shaky"})).ok()
    assert one == {
        "name": "shaky",
        "topic": "shaky",
        "order": 0,
        "url": URL,
        "method": "POST",
        "headers": {},
        "handler": "",
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


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            "url = http://10.0.0.1/",
            "url = http://10.0.0.1/: 10.0.0.1 is not a public address and webhook_allow",
        ),
        ("handler = shop:book", "handler: a server calls only URLs: remove the section, and let"),
    ],
)
def test_whom_it_cannot_call_keeps_the_server_from_starting(
    processes: Processes, redis_server: StoreServer, option: str, message: str
) -> None:
    server = processes.configured(f"[subscriber s]\ntopic = t\n{option}", redis_server)
    with pytest.raises(ProcessError):
        server.start()
    assert message in server.logged()


async def test_the_topic_of_a_python_function_is_left_to_the_earlier_server_that_declared_it(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, tmp_path: Path
) -> None:
    """While servers of both versions work on one store, no job skips the function; a worker can take it over."""
    try:
        program = program_of(BEFORE_NAMES, tmp_path / "program")
    except NoSuchCommit as error:
        pytest.skip(str(error))
    (program / "shop.py").write_text(MODULE, encoding="utf-8")
    database = redis_server.new_database()
    earlier = processes.configured(
        f"{FUNCTION}\n[subscriber url]\ntopic = t\norder = 1\nurl = {receiver.url('ship')}\n",
        redis_server,
        redis__db=database,
        webhook_allow="127.0.0.1/32",
    )
    let_run(earlier, program).start()
    # once no function subscribes, this server may be the one that calls
    ours = processes.server(
        redis_server, redis__db=database, language="en", webhook_allow="127.0.0.1/32"
    )
    await until(lambda: "topic 't' is left to servers of an earlier version" in ours.logged())
    async with open_api(ours.url) as api:
        shop = Shop(api, receiver, "t")
        done = tmp_path / "done"
        await shop.push(body=str(done))
        await shop.becomes("finished")
        assert done.read_text(encoding="utf-8") == "t-job"
        assert len(receiver.to("ship")) == 1
        assert "has no url" in (await api.call("/try-subscriber", {"name": "s"})).refused(3)
        earlier.kill()
        await shop.push("t-2")
        job: Json = (await api.pop("t", timeout=10)).ok()
        assert job["id"] == "t-2"
        (await api.call("/finish", {"id": "t-2", "receipt": job["receipt"]})).ok()
        # with a file of its own, which has no such section any more
        file = processes.configured(
            f"webhook_allow = 127.0.0.1/32\n[subscriber url]\ntopic = t\nurl = {receiver.url('ship')}\n",
            redis_server,
            redis__db=database,
        )
        file.start()
        assert [one["name"] for one in (await api.call("/subscribers", {})).ok()] == ["url"]
        await shop.push("t-3")
        await shop.becomes("finished", "t-3")
