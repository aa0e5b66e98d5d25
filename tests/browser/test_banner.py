"""What is wrong with the store is said above every page, in the words of /readyz."""

import os
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect
from redis import Redis

from tests.browser.conftest import IN_BOTH, Admin
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer
from tests.waiting import wait_until

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"  # in the zone of the browser, so without one
PAGES = ("", "servers", "topics", "push")


@pytest.fixture(scope="module")
def own_store(lasting_processes: Processes) -> Iterator[StoreServer]:
    store = lasting_processes.redis("--appendonly", "yes")
    yield store
    store.close()


@pytest.fixture(scope="module")
def own_server(lasting_processes: Processes, own_store: StoreServer) -> Iterator[QueueServer]:
    server = lasting_processes.server(own_store, redis__db=0)
    yield server
    server.close()


@pytest.fixture
def on_store(own_store: StoreServer) -> Iterator[Redis]:
    with Redis(host=LOOPBACK, port=own_store.port) as redis:
        yield redis
        redis.config_set("min-replicas-to-write", 0)
        redis.config_set("maxmemory", 0)


def shot(admin: Admin, name: str) -> None:
    if folder := os.environ.get("SHOTS"):
        admin.page.screenshot(path=f"{folder}/{name}-{admin.look}.png")


@IN_BOTH
def test_a_store_that_takes_no_writes_is_named_on_each_page_until_it_is_well(
    visit: Callable[[QueueServer], Admin], own_server: QueueServer, on_store: Redis
) -> None:
    admin = visit(own_server)
    banner = admin.page.locator(".banner")
    words = {
        "en": re.compile(rf"^the store is unavailable: too few replicas follow \(since {TIME}\)$"),
        "zh": re.compile(rf"^存储不可用：跟随的副本太少（自 {TIME} 起）$"),
    }
    admin.open("")
    expect(banner).to_have_count(0)
    on_store.config_set("min-replicas-to-write", 1)
    for page in PAGES:
        admin.open(page)
        expect(banner).to_have_text(words[admin.look.language])
        shot(admin, f"unwritable-{page}")
    admin.open("servers")
    expect(admin.page.get_by_role("row").filter(has_text=f":{own_server.port} #1")).to_be_visible()
    on_store.config_set("min-replicas-to-write", 0)
    expect(banner).to_have_count(0)
    admin.complaints.clear()


@IN_BOTH
def test_a_store_that_was_emptied_is_said_to_be_new_with_a_button(
    visit: Callable[[QueueServer], Admin], own_server: QueueServer, on_store: Redis
) -> None:
    admin = visit(own_server)
    admin.open("")
    on_store.flushall()
    banner = admin.page.locator(".banner")
    expect(banner).to_have_count(1)
    expect(banner.locator("span")).to_have_text(
        re.compile(rf"(^since|^自) {TIME} (the store|起，)")
    )
    shot(admin, "emptied")
    admin.press("Yes, it is new", banner)
    shot(admin, "emptied-ask")
    admin.agree("Yes, it is new")
    expect(banner).to_have_count(0)
    wait_until(lambda: "page: accept-store {}" in own_server.logged())


@IN_BOTH
def test_while_the_store_is_away_the_pages_say_it_once(
    visit: Callable[[QueueServer], Admin], own_server: QueueServer, own_store: StoreServer
) -> None:
    admin = visit(own_server)
    admin.open("")
    own_store.kill()
    try:
        for page in PAGES[:3]:
            admin.go(page)
            words = admin.page.get_by_text(re.compile("the store is unavailable|存储不可用"))
            expect(admin.page.locator("main .error")).to_contain_text(
                admin.text("Waiting for the store…")
            )
            expect(words).to_have_count(1)
            expect(words).to_contain_text(re.compile(rf"(since|自) {TIME}"))
    finally:
        own_store.start()
    expect(admin.page.locator(".banner")).to_have_count(0)
    expect(admin.page.locator("main .error")).to_have_count(0)
    admin.complaints.clear()
