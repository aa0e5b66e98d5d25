"""docs/howto/calls.md is true: its settings are understood, its commands and its program work."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from tests.api_client import Json, open_api
from tests.delivery.receiver import SECRET
from tests.partner import Answer, Partner
from tests.processes import LOOPBACK, REPOSITORY, Processes, QueueServer, StoreServer, free_port
from tests.waiting import until, until_async

from .markdown import COMMAND_S, at, blocks, read, run
from .test_orders import needs

SCRIPTS: Final = Path(sys.executable).parent
PAGE: Final = read("docs/howto/calls.md")
FOLDER: Final = REPOSITORY / "examples" / "calls"
MODULES: Final = REPOSITORY / "build" / "express" / "node_modules"
RECEIVERS: Final = {
    "php": "php -S {host}:{port} receiver.php",
    "fastapi": f"{sys.executable} -B -m uvicorn receiver:app --port {{port}}",
    "express": "node receiver.cjs",
    "go": "{folder}/receiver",
}


@pytest.fixture(scope="module")
def calling(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(
        redis_server,
        language="en",
        strict="yes",
        calls="yes",
        call_allow=f"{LOOPBACK}, example.com",
        call_secret=SECRET,
    )


async def test_the_commands_push_move_and_schedule_calls(calling: QueueServer) -> None:
    push, again, cron = (at(calling, block.text) for block in blocks(PAGE, "sh"))
    needs("curl", [])
    assert '"code":0' in run(["bash"], push)
    async with open_api(calling.url) as api:
        job = (await api.get("r-1")).ok()
        assert (job["state"], job["call"]["headers"]) == ("delayed", {"Authorization": "***"})
        assert run(["bash"], again).count('"code":0') == 2
        found = {"PATH": f"{SCRIPTS}:{os.environ['PATH']}", "DELAYQUEUE_URL": calling.url}
        assert '"code":0' in run(["bash"], cron, os.environ | found)
        planned = {
            one["name"]: one["call"]["url"] for one in (await api.call("/schedules", {})).ok()
        }
    assert planned == {
        "close-the-day": "https://example.com/close-the-day",
        "sweep": "https://example.com/sweep",
    }


async def test_the_merchant_gets_his_form_and_answers_success(calling: QueueServer) -> None:
    needs("php", [])
    program = blocks(PAGE, "php")[0]
    assert len([line for line in program.text.splitlines() if line]) <= 12
    with Partner(Answer(200, "success")) as merchant:
        given = f"$orderId = '1001'; $sign = 'abc'; $merchant = new stdClass; $merchant->notifyUrl = '{merchant.url}/';"
        assert '"code":0' in run(["php"], f"<?php {given}\n{at(calling, program.text)}")
        await until(lambda: bool(merchant.received))
    form = "out_trade_no=1001&trade_status=TRADE_SUCCESS&sign=abc"
    assert merchant.received == [form]


@contextmanager
def receiving(name: str, port: int, folder: Path) -> Iterator[Path]:
    """Runs a receiver; yields its log. Skips if its runtime or its framework is not here."""
    words = RECEIVERS[name].format(host=LOOPBACK, port=port, folder=folder).split()
    needs("go" if name == "go" else words[0], [MODULES] if name == "express" else [])
    if name == "go":
        run(["go", "build", "-o", words[0], str(FOLDER / "receiver.go")])
    variables = {"CALL_SECRET": SECRET, "PORT": str(port), "NODE_PATH": str(MODULES)}
    log = folder / "log"
    with (
        log.open("w") as written,
        subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *words],
            cwd=FOLDER,
            env=os.environ | variables,
            stdout=written,
            stderr=written,
        ) as receiver,
    ):
        try:
            yield log
        finally:
            receiver.kill()


@pytest.mark.parametrize("name", RECEIVERS)
async def test_a_receiver_takes_what_the_queue_has_signed_and_nothing_else(
    name: str, calling: QueueServer, tmp_path: Path
) -> None:
    port = free_port()
    url, job_id = f"http://{LOOPBACK}:{port}/", f"received-{name}"

    async def refuses_a_stranger() -> bool:
        try:
            async with stranger.post(url, data="{}") as answer:
                return answer.status == HTTPStatus.UNAUTHORIZED
        except aiohttp.ClientError:  # it is not ready
            return False

    async def has_ended() -> bool:
        return bool((await api.get(job_id)).ok()["ended"])

    async with aiohttp.ClientSession() as stranger, open_api(calling.url) as api:
        with receiving(name, port, tmp_path) as log:
            await until_async(refuses_a_stranger, within_s=COMMAND_S)
            call = {"url": url, "expect": "success"}
            job: Json = {"topic": "received", "id": job_id, "ttr": 60, "retain": 60, "call": call}
            (await api.push(**job, body='{"user":7}')).ok()
            await until_async(has_ended)
    assert re.search(rf"{job_id}: .*user.*7", log.read_text())
