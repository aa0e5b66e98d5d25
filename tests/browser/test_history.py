"""The charts of the past: there when the page is opened, of all topics and of one, for hours and for days."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from delayqueue.client import Client
    from tests.browser.conftest import Admin


def of_first_mark(queue: Client) -> float:
    """The place of the oldest mark's step in a chart of 2 days, as a share of the width."""
    past = queue.history(span="2d")
    return (past.marks[-1].at - past.start) // past.step / (len(past.pushed) - 1)


@pytest.mark.parametrize("place", ["", "topic/mail"])
def test_the_past_is_shown_by_minutes_and_for_days(admin: Admin, queue: Client, place: str) -> None:
    assert any(number is not None for number in queue.history().pushed)  # since the server started
    page = admin.open(place)
    card = page.locator(".past")
    expect(card.get_by_role("heading")).to_have_text(admin.text("Jobs per minute"))
    started = admin.text("server started")
    expect(card.locator(".marks li").first).to_contain_text(started)
    chart = card.locator(".u-over")
    tip = card.locator(".tip")
    chart.hover(position={"x": 50, "y": 50})
    expect(tip).to_contain_text(f"{admin.text('failed attempts')} –")
    card.get_by_role("button", name="2d").click()
    expect(card.get_by_role("heading")).to_have_text(admin.text("Jobs per 10 minutes"))
    admin.press("Lateness", card)
    box = chart.bounding_box()
    assert box
    chart.hover(
        position={"x": min(box["width"] * of_first_mark(queue), box["width"] - 0.6), "y": 50}
    )
    expect(tip).to_contain_text(started)
    expect(tip).to_contain_text(admin.text("worst"))
    admin.press("Depth", card)
    expect(card.get_by_role("img", name=admin.text("Depth"))).to_be_visible()
    expect(card.locator(".legend")).to_contain_text(admin.text("buried"))
