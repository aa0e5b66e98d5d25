"""axe-core (axe/, as published) finds nothing serious on the page."""

from pathlib import Path
from typing import Final

from playwright.sync_api import Page, expect

from delayqueue.client import Client
from tests.browser.conftest import IN_BOTH, Admin, bury

AXE: Final = (Path(__file__).parent / "axe" / "axe.min.js").read_text("utf-8")
PLACES: Final = (
    "",
    "topics",
    "topic/{topic}",
    "job/{id}",
    "clone/{id}",
    "edit/{id}",
    "tag/order:1",
    "find/{id}",
    "find/%7B%22message%22:%22refused%22%7D",
    "dead",
    "push",
    "subscribers",
    "schedules",
    "calls",
    "workers",
    "servers",
)
SERIOUS: Final = """async () => (await axe.run()).violations
    .filter(({impact}) => impact === "serious" || impact === "critical")
    .map(({id, nodes}) => `${id}: ${nodes.map((node) => node.html).join(" ")}`)"""


@IN_BOTH
def test_no_page_has_a_serious_fault(admin: Admin, queue: Client, topic: str) -> None:
    bury(queue, topic, 1, message="refused")
    queue.note("refused", "being fixed")
    job_id = queue.push(topic, "Hello", delay=600, tags=["order:1"])
    queue.schedule(topic, topic, every=600)
    faults = {}
    for place in PLACES:
        page = admin.open(place.format(topic=topic, id=job_id))
        faults[place] = serious(page)
    for place, opens in (("subscribers", "Add"), ("schedules", "Add")):
        page = admin.open(place)
        admin.press(opens)
        faults[f"the form of {place}"] = serious(page)
    for place, opens in ((f"topic/{topic}", "Purge"), ("tag/order:1", "Reschedule all")):
        page = admin.open(place)
        admin.press(opens)
        expect(page.locator("dialog")).to_be_visible()
        faults[f"the dialog of {opens}"] = serious(page)
    page = admin.open(f"topic/{topic}")
    admin.confirm("Pause")
    expect(admin.button("Undo")).to_be_visible()
    faults["the offer to undo"] = serious(page)
    queue.unschedule(topic)
    assert {place: found for place, found in faults.items() if found} == {}


def serious(page: Page) -> list[str]:
    expect(page.locator(".loading")).to_have_count(
        0
    )  # which fades in, with little contrast at first
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    found: list[str] = page.evaluate(SERIOUS)
    return found
