"""What is known is shown at once, the rest when it comes: with 100,000 topics the counts take seconds."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, Route, expect

from delayqueue.client import Client
from tests.browser.conftest import ONE_LOOK, Admin, holding
from tests.processes import QueueServer


@contextmanager
def without_counts(page: Page, *others: str) -> Iterator[None]:
    """The server counts no topics until the block ends."""
    held: list[Route] = []
    over = threading.Event()

    def hold(route: Route) -> None:
        if over.is_set() or (route.request.post_data_json or {}).get("counts") is False:
            route.continue_()
        else:
            held.append(route)

    for path in ("stats", *others):
        page.route(f"**/{path}", hold)
    yield
    over.set()
    for route in held:
        route.continue_()
    for path in ("stats", *others):
        page.unroute(f"**/{path}", hold)


@ONE_LOOK
def test_the_overview_does_not_wait_for_the_counts(admin: Admin, queue: Client, topic: str) -> None:
    queue.push(topic, delay=600)
    with without_counts(admin.page, "forecast"):
        page = admin.open("")
        expect(page.locator(".past .u-over")).to_be_visible()
        tiles = page.locator(".tile .value")
        expect(tiles.first).to_have_text("…")
        expect(tiles.last).not_to_have_text("…")  # of the servers, not of the topics
        expect(page.locator("section[aria-busy]")).to_have_count(1)
    expect(tiles.first).not_to_have_text("…")
    expect(page.locator("section[aria-busy]")).to_have_count(0)
    expect(page.locator(".loading")).to_have_count(0)


@ONE_LOOK
def test_the_servers_do_not_wait_for_the_counts(admin: Admin) -> None:
    with without_counts(admin.page):
        page = admin.open("servers")
        expect(page.locator("tbody tr").first).to_be_visible()


@ONE_LOOK
def test_a_page_that_takes_a_while_says_so(admin: Admin) -> None:
    with without_counts(admin.page, "buried"):
        admin.go("dead")
        expect(admin.said("Loading…")).to_be_visible()
    expect(admin.said("Loading…")).to_have_count(0)


@ONE_LOOK
def test_a_page_whose_files_do_not_arrive_is_not_blank(admin: Admin, server: QueueServer) -> None:
    page = admin.page
    with holding(page, "chart.js") as next_one:
        page.goto(f"{server.url}/admin", wait_until="commit")
        held = next_one()
        expect(page.locator("main")).to_contain_text("Reload the page if this stays.")
        held.continue_()
        expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main > .loading")).to_have_count(0)
