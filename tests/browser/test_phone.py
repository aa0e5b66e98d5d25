"""The page on a phone: 390 pixels wide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playwright.sync_api import expect

from tests.browser.conftest import Admin, bury

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

    from delayqueue.client import Client
    from tests.processes import QueueServer

WIDTH: Final = 390
REASON: Final = (
    "The bank refused the card, since its owner is not known under this address any more"
)
# of each part of a name, the lines on which it stands
LINES: Final = """link => [...link.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return range.getClientRects().length;
})"""


def test_tabs_reasons_and_buttons_are_within_reach_and_names_break_at_their_dots(
    chromium: Browser, server: QueueServer, queue: Client, topic: str
) -> None:
    name = f"orders.payment.reminders.of.{topic}.that-nobody_reads/any.more"
    bury(queue, name, 1, message=REASON)
    context = chromium.new_context(viewport={"width": WIDTH, "height": 844}, locale="en-US")
    admin = Admin(context, server)
    page = admin.open("dead")
    row = page.locator("tbody tr", has_text=topic)
    for place in ("dead", "topic/" + name.replace("/", "%2F")):
        row = admin.open(place).locator("tbody tr", has_text=REASON).first
        expect(row.get_by_text(REASON)).to_be_visible()
        reason = row.get_by_text(REASON)
        assert reason.evaluate("cell => cell.scrollWidth <= cell.clientWidth + 1")
        for each in (*page.locator("nav a, main button").all(), reason):
            assert_within(each)
    admin.open("topics")
    link = page.get_by_role("link", name=name).first
    assert set(link.evaluate(LINES)) == {1}
    assert admin.complaints == []
    context.close()


def assert_within(each: Locator) -> None:
    box = each.bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= WIDTH, each.inner_text()
