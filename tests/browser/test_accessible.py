"""What axe-core (axe/, as its publisher has it) says of the page: nothing that is serious."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Admin, bury, press

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from delayqueue.client import Client
    from tests.processes import QueueServer

AXE: Final = (Path(__file__).parent / "axe" / "axe.min.js").read_text("utf-8")
PLACES: Final = (
    "",
    "topics",
    "topic/{topic}",
    "job/{id}",
    "tag/order:1",
    "find/{id}",
    "dead",
    "push",
    "subscribers",
    "schedules",
    "servers",
)
SERIOUS: Final = """async () => (await axe.run()).violations
    .filter(({impact}) => impact === "serious" || impact === "critical")
    .map(({id, nodes}) => `${id}: ${nodes.map((node) => node.html).join(" ")}`)"""


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_no_page_has_a_serious_fault(  # fixtures
    chromium: Browser, server: QueueServer, queue: Client, topic: str, theme: str, width: int
) -> None:
    bury(queue, topic, 1, message="refused")
    job_id = queue.push(topic, "Hello", delay=600, tags=["order:1"])
    queue.schedule(topic, topic, every=600)
    context = chromium.new_context(
        color_scheme=theme,  # type: ignore[arg-type]
        viewport={"width": width, "height": 900},
        locale="en-US",
    )
    admin = Admin(context, server)
    faults = {}
    for place in PLACES:
        page = admin.open(place.format(topic=topic, id=job_id))
        faults[place] = serious(page)
    page = admin.open(f"topic/{topic}")
    press(page, "Purge")
    expect(page.locator("dialog")).to_be_visible()
    faults["a dialog"] = serious(page)
    queue.unschedule(topic)
    context.close()
    assert {place: found for place, found in faults.items() if found} == {}


def serious(page: Page) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    found: list[str] = page.evaluate(SERIOUS)
    return found
