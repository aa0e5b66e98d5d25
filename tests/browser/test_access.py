"""Who may use the page at /admin, and what is noted of it."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect

from delayqueue.client import Client
from tests.browser.conftest import Admin, agree, bury, press

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.processes import Processes, QueueServer, StoreServer

ADMIN_TOKEN: Final = "an-admins-token-of-the-tests"
VIEWER_TOKEN: Final = "a-viewers-token-of-the-tests"
PRODUCER_TOKEN: Final = "a-producers-token-of-the-tests"
TOKENS: Final = f"admin:{ADMIN_TOKEN}, produce:{PRODUCER_TOKEN}, view:{VIEWER_TOKEN}"


@pytest.fixture(scope="module")
def guarded(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(redis_server, auth_tokens=TOKENS)


def test_a_token_is_asked_for_once_and_kept_for_the_tab(
    chromium: Browser, guarded: QueueServer
) -> None:
    context = chromium.new_context()
    admin = Admin(context, guarded)
    page = admin.page
    page.goto(f"{guarded.url}/admin")
    page.locator("dialog input").fill("a-token-that-nobody-knows")
    press(page, "Sign in")
    expect(page.get_by_role("alert")).to_have_text("this token is not known")
    page.locator("dialog input").fill(ADMIN_TOKEN)
    press(page, "Sign in")
    expect(page.locator(".tile").first).to_be_visible()
    page.reload()
    expect(page.locator(".tile").first).to_be_visible()
    press(page, "Sign out")
    expect(page.locator("dialog input")).to_be_visible()
    assert admin.complaints == []
    context.close()


def test_what_is_done_with_the_page_stands_in_the_log(
    chromium: Browser, guarded: QueueServer, topic: str
) -> None:
    with Client(guarded.url, token=ADMIN_TOKEN) as queue:
        bury(queue, topic, 3)
    context = chromium.new_context(locale="en-US")
    page = Admin(context, guarded).page
    page.goto(f"{guarded.url}/admin#/topic/{topic}")
    page.locator("dialog input").fill(ADMIN_TOKEN)
    press(page, "Sign in")
    press(page, "buried")
    press(page, "Select all 3")
    press(page, "Kick")
    agree(page, "OK")
    expect(page.get_by_text("Done: 3 jobs.")).to_be_visible()
    press(page, "Pause")
    agree(page, "OK")
    expect(page.locator("h1 .tag")).to_have_text("paused")
    lines = [line for line in guarded.log_tail(100).splitlines() if "page: " in line]
    who = f"by admin token {sha256(ADMIN_TOKEN.encode()).hexdigest()[:4]} from 127.0.0.1"
    assert [line.partition("page: ")[2] for line in lines] == [
        f'kick {{"jobs": 3}} {who}: 3 done, code 0',
        f'pause {{"topic": "{topic}"}} {who}: 1 done, code 0',
    ]
    context.close()


def test_what_one_may_not_do_is_not_offered(chromium: Browser, guarded: QueueServer) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{guarded.url}/admin")
    page.locator("dialog input").fill(PRODUCER_TOKEN)
    press(page, "Sign in")
    expect(page.locator("nav a")).to_have_text(["Push a job"])
    page.locator("nav a").click()
    page.get_by_label("Topic").fill("mail")
    press(page, "Push")
    page.locator("form p a").click()
    actions = page.locator("main .bar button")
    expect(actions).to_have_text(["Reschedule", "Delete"])
    context.close()


def test_who_may_only_look_sees_all_and_is_offered_nothing(
    chromium: Browser, guarded: QueueServer, topic: str
) -> None:
    with Client(guarded.url, token=ADMIN_TOKEN) as queue:
        bury(queue, topic, 1, message="shut")
    context = chromium.new_context(locale="en-US")
    admin = Admin(context, guarded)
    admin.page.goto(f"{guarded.url}/admin")
    admin.page.locator("dialog input").fill(VIEWER_TOKEN)
    press(admin.page, "Sign in")
    expect(admin.page.locator("nav a")).to_have_count(6)  # all but the form that pushes
    changes = re.compile("Kick|Retry|Delete|Pause|Limit|Purge|Add|Remove|Clone|Reschedule")
    for place in ("dead", f"topic/{topic}", "subscribers", "schedules"):
        page = admin.open(place)
        expect(page.get_by_role("button", name=changes)).to_have_count(0)
    assert admin.complaints == []
    context.close()
