"""docs/subscribers.md and docs/schedules.md are true, and their examples work; so do the keys of docs/limits.md."""

import json
import re
from pathlib import Path
from typing import Final

import pytest

from delayqueue.config.loading import load
from delayqueue.config.sections import LIMIT_KEYS, SCHEDULE_KEYS, SUBSCRIBER_KEYS, Sections
from scripts.fields import described
from tests.api_client import open_api
from tests.processes import REPOSITORY, Processes, StoreServer
from tests.waiting import until_async

from .markdown import blocks, read

PAGE: Final = read("docs/subscribers.md")
SCHEDULES: Final = read("docs/schedules.md")
FOLDER: Final = REPOSITORY / "examples" / "subscribers"


@pytest.mark.parametrize(
    ("page", "path", "keys"),
    [
        ("subscribers", "/subscribe", SUBSCRIBER_KEYS),
        ("schedules", "/schedule", SCHEDULE_KEYS),
        ("limits", "/limit", LIMIT_KEYS),
    ],
)
def test_every_key_of_a_section_is_a_field_of_the_endpoint_or_is_named(
    page: str, path: str, keys: dict[str, object]
) -> None:
    own = keys.keys() - described(path).keys()
    assert own <= set(re.findall(r"`(\w+)`", read(f"docs/{page}.md")))


@pytest.mark.parametrize(
    "block", blocks(PAGE + SCHEDULES, "ini"), ids=["subscribers", "allow", "schedules"]
)
def test_the_config_that_is_shown_is_understood(block: object, tmp_path: Path) -> None:
    path = tmp_path / "conf"
    path.write_text(getattr(block, "text", ""), encoding="utf-8")
    config = load(path, {})
    assert (config.sections and config.sections != Sections()) or config.webhook_allow


async def test_a_paid_order_runs_its_four_handlers_in_order(
    processes: Processes, redis_server: StoreServer, tmp_path: Path
) -> None:
    config = (FOLDER / "order_invoice.conf").read_text(encoding="utf-8")
    server = processes.configured(config, redis_server)
    server.set_environment(PYTHONPATH=f"{REPOSITORY}:{FOLDER}", INVOICES=str(tmp_path))
    server.start()
    body = json.dumps({"order": 1001, "items": {"tea": 500, "cup": 1250}})
    async with open_api(server.url) as api:
        (await api.push(topic="order-paid", id="1001", delay=0, body=body, retain=60)).ok()

        async def is_in(state: str) -> bool:
            return bool((await api.get("1001")).ok()["state"] == state)

        await until_async(lambda: is_in("delayed"))
        (tmp_path / "1001.address").write_text("a@example.com")
        await until_async(lambda: is_in("finished"))
        job = (await api.get("1001")).ok()
    assert [
        (result["subscriber"], result["attempts"], result["message"]) for result in job["results"]
    ] == [
        ("write-invoice", 1, "I-1001 of 1750 cents"),
        ("print-invoice", 1, "1001.txt"),
        ("mail-invoice", 2, "sent to a@example.com"),
        ("archive", 1, "2 files"),
    ]
    assert (tmp_path / "1001.txt").read_text() == "Invoice I-1001: 17.50\n"
