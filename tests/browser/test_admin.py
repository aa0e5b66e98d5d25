"""The page at /admin, in a real browser."""

from __future__ import annotations

import json
import re
import time
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect

from delayqueue.client import Client, Job
from tests.browser.conftest import Admin, agree, bury, press

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.processes import Processes, QueueServer, StoreServer

PLACES: Final = (
    "",
    "topics",
    "dead",
    "topic/mail",
    "job/mail-1",
    "tag/order:1",
    "push",
    "servers",
    "subscribers",
    "schedules",
    "no",
)
ADMIN_TOKEN: Final = "an-admins-token-of-the-tests"
VIEWER_TOKEN: Final = "a-viewers-token-of-the-tests"
PRODUCER_TOKEN: Final = "a-producers-token-of-the-tests"
TOKENS: Final = f"admin:{ADMIN_TOKEN}, produce:{PRODUCER_TOKEN}, view:{VIEWER_TOKEN}"
SCRIPT: Final = "<img src=x onerror=alert(1)><script>alert(1)</script>"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_every_page_shows_itself_in_both_languages_and_themes(
    chromium: Browser, server: QueueServer, queue: Client, theme: str, language: str
) -> None:
    queue.push("mail", "Hello", id="mail-1", delay=600, tags=["order:1"])
    context = chromium.new_context(color_scheme=theme, locale=language)  # type: ignore[arg-type]
    admin = Admin(context, server)
    for place in PLACES:
        page = admin.open(place)
        expect(page.locator("nav a")).to_have_count(7)
        assert page.locator("html").get_attribute("lang") == language.replace("-US", "")
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 19, 26)"
        assert dark == (theme == "dark")
    context.close()
    assert admin.complaints == []


@pytest.mark.parametrize("place", PLACES)
def test_a_narrow_screen_needs_no_scrolling_sideways(
    chromium: Browser, server: QueueServer, queue: Client, place: str
) -> None:
    queue.push("mail", "Hello", id="mail-1", delay=600, tags=["order:1"])
    context = chromium.new_context(viewport={"width": 360, "height": 740})
    page = Admin(context, server).open(place)
    page.wait_for_timeout(300)  # for what comes after the heading
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()


def test_language_and_theme_are_kept(admin: Admin) -> None:
    page = admin.open("")
    press(page, "中文")
    expect(page.get_by_role("heading", name="概览")).to_be_visible()
    page.get_by_role("button", name="深色或浅色").click()
    page.reload()
    expect(page.get_by_role("heading", name="概览")).to_be_visible()
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_the_overview_counts_and_foretells(admin: Admin, queue: Client, topic: str) -> None:
    page = admin.open("")
    delayed = page.locator(".tile", has_text="delayed").locator(".value")
    expect(delayed).not_to_be_empty()
    before = int(delayed.inner_text().replace(",", ""))
    queue.push_many([Job(topic=topic, delay=900) for _ in range(7)])
    expect(delayed).to_have_text(f"{before + 7:,}")  # without a reload
    expect(page.locator(".chart canvas").first).to_be_visible()


def test_a_click_on_a_bar_lists_its_jobs(admin: Admin, queue: Client, topic: str) -> None:
    queue.push_many([Job(topic=topic, id=f"{topic}-{n}", delay=1800) for n in range(3)])
    page = admin.open(f"topic/{topic}")
    chart = page.locator(".chart .u-over")
    box = chart.bounding_box()
    assert box
    chart.click(position={"x": box["width"] / 2 + 2, "y": box["height"] - 3})
    expect(page.locator("tbody tr")).to_have_count(3)
    assert "delayed" in page.url


def test_a_job_is_pushed_by_the_form_and_deleted(admin: Admin, queue: Client, topic: str) -> None:
    page = admin.open("push")
    page.get_by_label("Topic").fill(topic)
    page.get_by_label("Delay").fill("2h")
    page.get_by_label("Tags").fill("order:5, vip")
    page.get_by_label("Body").fill('{"order": 5}')
    press(page, "Push")
    page.locator("form p a").click()
    expect(page.locator("dl")).to_contain_text(topic)
    expect(page.locator("pre")).to_have_text('{\n  "order": 5\n}')
    job_id = page.locator("h1").inner_text()
    details = queue.get(job_id)
    assert details
    assert (details.tags, details.state) == (("order:5", "vip"), "delayed")
    press(page, "Delete")
    press(page.locator("dialog"), "Delete")  # type: ignore[arg-type]  # a locator finds buttons, too
    expect(page.locator(".empty")).to_contain_text(job_id)
    assert queue.get(job_id) is None


def test_saying_no_changes_nothing(admin: Admin, queue: Client, topic: str) -> None:
    job_id = queue.push(topic, delay=60)
    page = admin.open(f"job/{job_id}")
    press(page, "Delete")
    press(page, "Cancel")
    page.keyboard.press("Tab")
    assert queue.get(job_id) is not None


def test_what_the_server_refuses_is_shown_in_words(admin: Admin) -> None:
    page = admin.open("push")
    page.get_by_label("Topic").fill("a,b")
    press(page, "Push")
    expect(page.get_by_role("alert")).to_contain_text("comma")
    page.get_by_label("Topic").fill("a")
    page.get_by_label("Delay").fill("soon")
    press(page, "Push")
    expect(page.get_by_role("alert").last).to_contain_text("“soon” is no length of time")


@pytest.mark.parametrize("place", ["job/{id}", "topic/{topic}"])
def test_a_script_in_a_job_is_shown_as_text(
    admin: Admin, queue: Client, topic: str, place: str
) -> None:
    names = {"id": f"{topic}{SCRIPT}", "topic": f"{topic}{SCRIPT}"}
    body = json.dumps({"name": SCRIPT})
    queue.push(names["topic"], body, id=names["id"], tags=[SCRIPT], retry=["1h"])
    job = queue.pop(names["topic"], wait=5)
    assert job
    queue.bury(job, message=SCRIPT)
    page = admin.open("")
    page.goto(page.url.partition("#")[0] + "#/" + place.format_map(_quoted(page, names)))
    expect(page.locator("main")).to_contain_text(SCRIPT)
    assert page.locator("main script, main img").count() == 0


def _quoted(page: Page, names: dict[str, str]) -> dict[str, str]:
    return {key: page.evaluate("encodeURIComponent", name) for key, name in names.items()}


def test_a_reserved_job_shows_its_history_and_is_released(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, id=topic, retry=["1s", "1h"], retain=60)
    job = queue.pop(topic, wait=5)
    assert job
    page = admin.open(f"job/{topic}")
    expect(page.locator(".timeline")).to_contain_text("attempt 1 runs")
    press(page, "Extend")
    press(page, "Release")
    press(page, "OK")
    expect(page.locator(".timeline")).to_contain_text("attempt 1 failed")
    again = queue.pop(topic, wait=5)
    assert again
    queue.finish(again)
    expect(page.locator(".timeline li.good")).to_contain_text("finished")


def test_a_buried_job_is_kicked_and_rescheduled(admin: Admin, queue: Client, topic: str) -> None:
    queue.push(topic, id=topic)
    job = queue.pop(topic, wait=5)
    assert job
    queue.bury(job)
    page = admin.open(f"job/{topic}")
    press(page, "Kick")
    expect(page.locator("dd .state")).to_have_text("ready")
    press(page, "Reschedule")
    page.locator("dialog input").fill("3h")
    press(page, "OK")
    expect(page.locator("dd .state")).to_have_text("delayed")
    details = queue.get(topic)
    assert details
    assert details.due > time.time() + 10_000


def test_the_jobs_of_a_tag_are_rescheduled_at_once(admin: Admin, queue: Client, topic: str) -> None:
    for _ in range(3):
        queue.push(topic, delay=60, tags=[topic])
    page = admin.open(f"tag/{topic}")
    press(page, "Reschedule all")
    page.locator("dialog input").fill("2h")
    page.locator("dialog").get_by_role("button", name="OK").click()
    expect(page.get_by_text("Done: 3 jobs.")).to_be_visible()
    assert min(job.due for job in queue.list_jobs(topic).jobs) > time.time() + 7000


def test_a_topic_is_paused_resumed_and_purged_by_its_name(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, delay=60)
    page = admin.open(f"topic/{topic}")
    press(page, "Pause")
    page.locator("dialog input").fill("10m")
    press(page, "OK")
    expect(page.locator("h1 .tag")).to_contain_text("paused until")
    press(page, "Resume")
    expect(page.locator("h1 .tag")).to_have_count(0)
    press(page, "Limit")
    page.locator("dialog input").fill("0.5/s, 10")
    press(page, "OK")
    expect(page.locator("h1 .tag")).to_have_text("limited: 0.5/s, 10")
    press(page, "Limit")
    page.locator("dialog input").fill("")
    press(page, "OK")
    expect(page.locator("h1 .tag")).to_have_count(0)
    press(page, "Purge")
    agree = page.locator("dialog").get_by_role("button", name="Purge")
    expect(agree).to_be_disabled()
    page.locator("dialog input").fill(topic)
    agree.click()
    expect(page.get_by_text("Done: 1 jobs.")).to_be_visible()


def test_jobs_are_found_by_id_and_by_tag(admin: Admin, queue: Client, topic: str) -> None:
    job_id = queue.push(topic, delay=60, tags=[topic])
    page = admin.open("")
    search = page.get_by_role("searchbox", name="Job id, or tag:…")
    search.fill(job_id)
    search.press("Enter")
    expect(page.locator("h1")).to_have_text(job_id)
    search.fill(f"tag:{topic}")
    search.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    press(page, "Cancel all")
    page.locator("dialog").get_by_role("button", name="Cancel all").click()
    expect(page.get_by_text("Done: 1 jobs.")).to_be_visible()
    assert queue.get(job_id) is None


def test_a_long_list_is_read_page_by_page(admin: Admin, queue: Client, topic: str) -> None:
    queue.push_many([Job(topic=topic, delay=60 + n) for n in range(120)])
    page = admin.open(f"topic/{topic}")
    rows = page.locator("tbody tr")
    for shown in (50, 100, 120):
        expect(rows).to_have_count(shown)
        more = page.get_by_role("button", name="Show more")
        if shown < 120:
            more.click()
    expect(more).to_have_count(0)


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


@pytest.mark.parametrize(
    ("place", "fields", "shown"),
    [
        ("subscribers", {"URL": "https://shop.example/paid"}, "https://shop.example/paid"),
        ("schedules", {"or every": "15m"}, "15m"),
    ],
)
def test_what_runs_by_itself_is_added_and_removed(
    admin: Admin, topic: str, place: str, fields: dict[str, str], shown: str
) -> None:
    page = admin.open(place)
    for label, text in ({"Name": f"the {topic}", "Topic": topic} | fields).items():
        page.get_by_label(label).fill(text)
    press(page, "Add")
    row = page.locator("tbody tr", has_text=f"the {topic}")
    expect(row).to_contain_text(shown)
    row.get_by_role("button", name="Remove").click()
    page.locator("dialog").get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)


def test_a_subscriber_is_added_and_shown_with_what_it_wants(admin: Admin, topic: str) -> None:
    page = admin.open("subscribers")
    texts = {"Name": f"the {topic}", "Topic": topic, "URL": "https://shop.example/paid"}
    for label, text in (texts | {"What it must answer": "*success*"}).items():
        page.get_by_label(label).fill(text)
    page.get_by_label("If it fails for good").select_option("go on")
    page.get_by_label("Is sent").select_option("the event")
    press(page, "Add")
    row = page.locator("tbody tr", has_text=f"the {topic}")
    for shown in ("*success*", "go on", "the event"):
        expect(row.get_by_role("cell", name=shown, exact=True)).to_be_visible()
    page.get_by_role("button", name="中文").click()
    expect(row.get_by_role("cell", name="继续", exact=True)).to_be_visible()
    row.get_by_role("button", name="移除").click()
    page.locator("dialog").get_by_role("button", name="移除").click()
    expect(row).to_have_count(0)


def test_a_server_that_is_away_is_said_and_comes_back(
    chromium: Browser, processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server)
    context = chromium.new_context()
    page = Admin(context, server).open("")
    expect(page.locator(".tile").first).to_be_visible()
    server.stop()
    complaint = page.get_by_text("The server does not answer")
    expect(complaint).to_be_visible()
    server.start()
    expect(complaint).to_have_count(0)
    context.close()
    server.close()
