"""The page on a phone: 390 pixels wide."""

from typing import Final

import pytest
from playwright.sync_api import Locator, expect

from delayqueue.client import Client
from tests.browser.conftest import Admin, bury, in_looks
from tests.browser.looks import ALL, PHONE, Look

REASON: Final = (
    "The bank refused the card, since its owner is not known under this address any more"
)
# for each part of a name, the lines that it is on
LINES: Final = """link => [...link.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return range.getClientRects().length;
})"""
# the cells before which the name of their column needs several lines
WRAPPED: Final = """() => [...document.querySelectorAll("td")].filter((cell) => {
    const style = getComputedStyle(cell, "::before");
    return parseFloat(style.height) > 1.5 * parseFloat(style.lineHeight);
}).map((cell) => cell.dataset.name)"""
PHONES: Final = [look for look in ALL if look.width == PHONE.width]


@pytest.mark.parametrize(
    "look", in_looks(PHONES, [PHONE, Look(PHONE.width, "en", "light")]), indirect=True
)
def test_tabs_reasons_and_buttons_are_within_reach_and_names_break_at_their_dots(
    admin: Admin, queue: Client, topic: str
) -> None:
    name = f"orders.payment.reminders.of.{topic}.that-nobody_reads/any.more"
    bury(queue, name, 1, message=REASON)
    for place in ("dead", "topic/" + name.replace("/", "%2F")):
        row = admin.open(place).locator("tbody tr", has_text=REASON).first
        reason = row.get_by_text(REASON)
        expect(reason).to_be_visible()
        assert reason.evaluate("cell => cell.scrollWidth <= cell.clientWidth + 1")
        for each in (*admin.page.locator("nav a, main button").all(), reason):
            assert_within(each)
    link = admin.open("topics").get_by_role("link", name=name).first
    assert set(link.evaluate(LINES)) == {1}


@pytest.mark.parametrize("look", in_looks([Look(PHONE.width, "en", "light")], ALL), indirect=True)
def test_the_names_of_columns_are_on_one_line(admin: Admin, queue: Client, topic: str) -> None:
    queue.subscribe(topic, topic, "https://shop.example/paid")
    queue.pop(topic, wait=0, worker=topic)
    for place in ("servers", "subscribers", "workers"):
        page = admin.open(place)
        expect(page.locator("tbody tr")).not_to_have_count(0)
        assert page.evaluate(WRAPPED) == []
    queue.unsubscribe(topic)


@pytest.mark.parametrize("look", in_looks(PHONES, [PHONE]), indirect=True)
def test_of_a_long_body_only_the_first_lines_are_shown(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.schedule(topic, topic, every=600, body="line of body " * 3000)
    cell = admin.open("schedules").locator("tbody tr", has_text=topic).locator("td.cut")
    assert 50 < cell.evaluate("cell => cell.getBoundingClientRect().height") < 100
    queue.unschedule(topic)


def assert_within(each: Locator) -> None:
    box = each.bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE.width, each.inner_text()
