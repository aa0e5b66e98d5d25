"""The overview, the list of topics, topics that need attention, and a topic's page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from delayqueue.client import Client, Job
from tests.browser.conftest import bury

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.conftest import Admin
    from tests.processes import Processes, QueueServer, StoreServer


@pytest.fixture(scope="module")
def crowded(processes: Processes, redis_server: StoreServer) -> QueueServer:
    """A server with ten thousand topics."""
    server = processes.server(redis_server, redis__db=redis_server.new_database())
    with Client(server.url) as queue:
        for piece in range(10):
            queue.push_many([Job(topic=f"t-{piece}-{n:03}", delay=600) for n in range(1000)])
    return server


@pytest.fixture(scope="module")
def troubled(processes: Processes, redis_server: StoreServer) -> QueueServer:
    """A server with topics, some of which need attention."""
    server = processes.server(redis_server, redis__db=redis_server.new_database())
    with Client(server.url) as queue:
        for name, count in (("healthy", 3), ("busy", 7), ("held", 1)):
            queue.push_many([Job(topic=name, delay=3600) for _ in range(count)])
        bury(queue, "broken", 2)
        queue.push("held")
        queue.pause("held")
        queue.limit("busy", rate=5)
    return server


def test_ten_thousand_topics_are_shown_in_part_and_found_by_name(
    visit: Callable[[QueueServer], Admin], crowded: QueueServer
) -> None:
    admin = visit(crowded)
    page = admin.open("topics")
    expect(page.locator("tbody tr")).to_have_count(100)
    admin.press("Next page")
    expect(page.get_by_text("101 – 200")).to_be_visible()
    expect(page.locator("tbody tr").first).to_contain_text("t-0-100")
    page.get_by_placeholder(admin.text("Filter by name")).fill("9-12")
    expect(page.locator("tbody tr")).to_have_count(10)


def test_topics_are_sorted_and_filtered_and_those_in_trouble_say_why(
    visit: Callable[[QueueServer], Admin], troubled: QueueServer
) -> None:
    admin = visit(troubled)
    page = admin.open("")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)  # neither the healthy one nor the one that is only limited
    expect(rows.filter(has_text="broken")).to_contain_text(admin.text("2 jobs buried"))
    expect(rows.filter(has_text="held")).to_contain_text(admin.text("paused, 1 job waiting"))
    admin.link("Topics").click()
    expect(rows).to_have_text([re.compile(name) for name in ("broken", "busy", "healthy", "held")])
    by_delayed = page.locator("thead").get_by_role("button", name=admin.text("delayed"))
    by_delayed.click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text(admin.text("delayed"))
    expect(rows.first).to_contain_text("busy")
    by_delayed.click()
    expect(rows.first).to_contain_text("broken")
    only = page.get_by_role("group", name=admin.text("Only"))
    for state, name in (("buried", "broken"), ("paused", "held"), ("limited", "busy")):
        admin.press(state, only)
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text(name)


def test_the_overview_counts_and_foretells(
    visit: Callable[[QueueServer], Admin], troubled: QueueServer
) -> None:
    admin = visit(troubled)
    page = admin.open("")
    delayed = page.locator(".tile:has(.dot.delayed) .value")
    expect(delayed).not_to_be_empty()
    before = int(delayed.inner_text().replace(",", ""))
    with Client(troubled.url) as queue:
        queue.push_many([Job(topic="busy", delay=900) for _ in range(7)])
    expect(delayed).to_have_text(f"{before + 7:,}")  # without a reload
    expect(page.locator(".chart canvas").first).to_be_visible()


def test_a_click_on_a_bar_lists_its_jobs(admin: Admin, queue: Client, topic: str) -> None:
    queue.push_many([Job(topic=topic, id=f"{topic}-{n}", delay=1800) for n in range(3)])
    page = admin.open(f"topic/{topic}")
    chart = page.locator(".chart.pointer .u-over")
    box = chart.bounding_box()
    assert box
    chart.click(position={"x": box["width"] / 2 + 2, "y": box["height"] - 3})
    expect(page.locator("tbody tr")).to_have_count(3)
    assert "delayed" in page.url


def test_a_topic_is_paused_resumed_limited_and_purged_by_its_name(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, delay=60)
    page = admin.open(f"topic/{topic}")
    tags = page.locator("h1 .tag")
    answer = page.locator("dialog input")
    admin.press("Pause")
    answer.fill("10m")
    admin.agree("OK")
    expect(tags).to_have_text(admin.pattern("paused until {0}"))
    admin.press("Resume")
    expect(tags).to_have_count(0)
    admin.press("Limit")
    answer.fill("0.5/s, 10")
    admin.agree("OK")
    expect(tags).to_have_text(admin.text("limited: 0.5/s, 10"))
    admin.press("Limit")
    answer.fill("")
    admin.agree("OK")
    expect(tags).to_have_count(0)
    admin.press("Purge")
    purge = admin.button("Purge", page.locator("dialog"))
    expect(purge).to_be_disabled()
    answer.fill(topic)
    purge.click()
    expect(admin.said("Done: 1 job.")).to_be_visible()
