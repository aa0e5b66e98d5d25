"""docs/howto/calls.md is true: its settings are understood, its commands and its program work."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from delayqueue.config.loading import load
from delayqueue.web.targets import CallRequest
from tests.api_client import open_api
from tests.processes import LOOPBACK
from tests.waiting import until

from .markdown import at, blocks, read, run
from .partner import Answer, Partner
from .test_orders import needs

if TYPE_CHECKING:
    from tests.processes import Processes, QueueServer, StoreServer

SCRIPTS: Final = Path(sys.executable).parent
PAGE: Final = read("docs/howto/calls.md")


@pytest.fixture(scope="module")
def calling(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(
        redis_server,
        language="en",
        strict="yes",
        calls="yes",
        call_allow=f"{LOOPBACK}, example.com",
    )


@pytest.mark.parametrize("block", blocks(PAGE, "ini"), ids=["allow", "urls"])
def test_the_settings_are_understood(block: object, tmp_path: Path) -> None:
    path = tmp_path / "conf"
    path.write_text(getattr(block, "text", ""), encoding="utf-8")
    config = load(path, {})
    assert config.calls or config.call_allow


def test_every_field_has_its_row() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == [*CallRequest.model_fields]


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
    (program,) = blocks(PAGE, "php")
    assert len([line for line in program.text.splitlines() if line]) <= 12
    with Partner(Answer(200, "success")) as merchant:
        given = f"$orderId = '1001'; $sign = 'abc'; $merchant = new stdClass; $merchant->notifyUrl = '{merchant.url}/';"
        assert '"code":0' in run(["php"], f"<?php {given}\n{at(calling, program.text)}")
        await until(lambda: bool(merchant.received))
    form = "out_trade_no=1001&trade_status=TRADE_SUCCESS&sign=abc"
    assert merchant.received == [form]
