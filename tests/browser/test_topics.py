"""The list of topics, and those that need attention."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from delayqueue.client import Client, Job
from tests.browser.conftest import Admin, bury, press

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.processes import Processes, StoreServer


def test_ten_thousand_topics_are_shown_in_part_and_found_by_name(
    chromium: Browser, processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server)
    with Client(server.url) as queue:
        for piece in range(10):
            queue.push_many([Job(topic=f"t-{piece}-{n:03}", delay=600) for n in range(1000)])
    context = chromium.new_context()
    page = Admin(context, server).open("topics")
    expect(page.locator("tbody tr")).to_have_count(100)
    press(page, "Next page")
    expect(page.get_by_text("101 – 200")).to_be_visible()
    expect(page.locator("tbody tr").first).to_contain_text("t-0-100")
    page.get_by_placeholder("Filter by name").fill("9-12")
    expect(page.locator("tbody tr")).to_have_count(10)
    context.close()
    server.close()


def test_topics_are_sorted_and_filtered_and_those_in_trouble_say_why(
    chromium: Browser, processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server, redis__db=redis_server.new_database())
    with Client(server.url) as queue:
        for name, count in (("healthy", 3), ("busy", 7), ("held", 1)):
            queue.push_many([Job(topic=name, delay=600) for _ in range(count)])
        bury(queue, "broken", 2)
        queue.push("held")
        queue.pause("held")
        queue.limit("busy", rate=5)
    context = chromium.new_context(locale="en-US")
    page = Admin(context, server).open("")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)  # neither the healthy one nor the one that is limited only
    expect(rows.filter(has_text="broken")).to_contain_text("2 jobs buried")
    expect(rows.filter(has_text="held")).to_contain_text("paused, 1 job waiting")
    page.get_by_role("link", name="Topics").click()
    expect(rows).to_have_text([re.compile(name) for name in ("broken", "busy", "healthy", "held")])
    press(page, "delayed")
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("delayed")
    expect(rows.first).to_contain_text("busy")
    press(page, "delayed")
    expect(rows.first).to_contain_text("broken")
    for only, name in (("buried", "broken"), ("paused", "held"), ("limited", "busy")):
        page.get_by_role("group", name="Only").get_by_role("button", name=only).click()
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text(name)
    context.close()
    server.close()
