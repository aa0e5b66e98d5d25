"""The page at /admin, in a real browser."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect

from delayqueue.client import Client, Job
from tests.browser.conftest import Admin, press

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
    "find/mail",
    "push",
    "servers",
    "subscribers",
    "schedules",
    "no",
)
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


def test_a_narrow_screen_needs_no_scrolling_sideways(
    chromium: Browser, server: QueueServer, queue: Client
) -> None:
    queue.push("mail", "Hello", id="mail-1", delay=600, tags=["order:1"])
    context = chromium.new_context(viewport={"width": 360, "height": 740})
    admin = Admin(context, server)
    widths = {}
    for place in PLACES:
        page = admin.open(place)
        page.wait_for_timeout(100)  # for a chart that takes the width that there is
        widths[place] = page.evaluate("document.documentElement.scrollWidth")
    assert {place: width for place, width in widths.items() if width > 360} == {}
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
    chart = page.locator(".chart.pointer .u-over")
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


@pytest.mark.parametrize("place", ["job/{id}", "topic/{topic}", "find/{id}"])
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


def test_jobs_are_found_by_id_by_parts_of_id_topic_and_body_and_by_tag(
    admin: Admin, queue: Client, topic: str
) -> None:
    job_id = queue.push(topic, '{"name": "排队"}', delay=60, tags=[topic])
    queue.push(topic, '{"name": "other"}', delay=60)
    page = admin.open("")
    search = page.get_by_role("searchbox", name="Id, a part of it")
    search.fill(job_id)
    search.press("Enter")
    expect(page.locator("h1")).to_have_text(job_id)
    search.fill(job_id[3:20])
    search.press("Enter")
    expect(page.locator("tbody tr")).to_have_text(re.compile(job_id))
    search.fill(topic[3:])
    search.press("Enter")
    page.get_by_role("link", name=topic).click()
    text = page.get_by_role("searchbox", name="Text in bodies")
    text.fill('"name": "排队')
    text.press("Enter")
    expect(page.locator("tbody tr")).to_have_text(re.compile(job_id))
    expect(page.get_by_text(re.compile("^All .* jobs were looked at"))).to_be_visible()
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
    expect(row).to_contain_text(
        "expects *success* · goes on if it fails for good · is sent the event"
    )
    page.get_by_role("button", name="中文").click()
    expect(row).to_contain_text("最终失败时继续")
    row.get_by_role("button", name="移除").click()
    page.locator("dialog").get_by_role("button", name="移除").click()
    expect(row).to_have_count(0)


def test_the_environment_is_named_in_its_colour_also_where_a_topic_is_purged(
    chromium: Browser, processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server, admin_title="Production, red")
    context = chromium.new_context(locale="en-US")
    admin = Admin(context, server)
    page = admin.open("topic/mail")
    strip = page.locator("#environment div")
    expect(strip).to_have_text("Production")
    expect(strip).to_have_css("background-color", "rgb(185, 28, 28)")
    expect(page).to_have_title("Production · delay-queue")
    press(page, "Purge")
    expect(page.locator("dialog").get_by_role("alert")).to_have_text("Production")
    assert admin.complaints == []
    context.close()
    server.close()


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
