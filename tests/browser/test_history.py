"""The charts of the past: there when the page is opened, of all topics and of one, for hours and for days."""

import json
import re
import time
from collections.abc import Callable
from datetime import datetime
from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Route, expect

from delayqueue.client import Client
from tests.browser.conftest import ON_PHONE, ONE_LOOK, Admin
from tests.processes import Processes, QueueServer, StoreServer

LEAST: Final = 10  # steps of a chart


def of_first_mark(queue: Client) -> float:
    """The place of the oldest mark's step in a chart of 2 days, as a share of the width.

    The chart begins with the first known step, if that leaves enough of them.
    """
    past = queue.history(span="2d")
    known = [
        place
        for place, figures in enumerate(zip(past.pushed, past.ready, strict=True))
        if figures != (None, None)
    ]
    first = min(*known[:1], len(past.pushed) - LEAST)
    started = [mark for mark in past.marks if mark.kind == "started"]
    place = (started[-1].at - past.start) // past.step
    return max(0, place - first) / (len(past.pushed) - 1 - first)


@ONE_LOOK
def test_the_past_of_a_new_server_is_not_an_empty_axis_of_three_hours(
    visit: Callable[[QueueServer], Admin], processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server, redis__db=redis_server.new_database())
    card = visit(server).open("").locator(".past")
    card.locator(".u-over").hover(position={"x": 1, "y": 50})
    first = card.locator(".tip div").first.inner_text()
    age_s = time.time() - datetime.fromisoformat(first).timestamp()
    assert age_s < (LEAST + 5) * 60
    server.close()


@ON_PHONE
@pytest.mark.parametrize("place", ["", "topic/mail"])
def test_the_past_is_shown_by_minutes_and_for_days(admin: Admin, queue: Client, place: str) -> None:
    assert any(number is not None for number in queue.history().pushed)  # since the server started
    page = admin.open(place)
    card = page.locator(".past")
    expect(card.get_by_role("heading")).to_have_text(admin.text("Jobs per minute"))
    started = admin.text("server started")
    expect(card.locator(".marks li.started").first).to_contain_text(started)
    chart = card.locator(".u-over")
    tip = card.locator(".tip")
    chart.hover(position={"x": 50, "y": 50})
    # "–" before the server started, which a slow run can have left behind
    expect(tip).to_contain_text(re.compile(f"{admin.text('failed attempts')} [–0-9]"))
    admin.press("2d", card)
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


@ONE_LOOK
def test_a_topic_shows_the_changes_that_name_it_and_the_overview_shows_all(
    admin: Admin, queue: Client, topic: str
) -> None:
    actions = [f'pause {{"topic": {json.dumps(name)}}}: 1' for name in (f'{topic}"', topic)]

    def with_deeds(route: Route) -> None:
        told = route.fetch().json()
        did = {"kind": "did", "lasted": 0, "server": "", "by": "ann"}
        told["data"]["marks"] = [
            did | {"at": time.time() - n, "what": action} for n, action in enumerate(actions)
        ]
        route.fulfill(json=told)

    queue.push(topic, delay=600)
    page = admin.page
    page.route("**/history", with_deeds)
    try:
        for place, shown in (("", actions), (f"topic/{quote(topic)}", actions[1:])):
            listed = admin.open(place).locator(".marks li")
            expect(listed).to_have_text(
                [re.compile(re.escape(f"ann: {action}")) for action in shown]
            )
    finally:
        page.unroute("**/history")
