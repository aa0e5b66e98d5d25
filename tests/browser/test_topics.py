"""The overview, the list of topics, topics that need attention, and a topic's page."""

import json
import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Route, expect

from delayqueue.client import Client, Job
from tests.browser.conftest import HEIGHT, IN_BOTH, ON_PHONE, ONE_LOOK, Admin, bury, second_click
from tests.browser.looks import PHONE
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


@IN_BOTH
def test_ten_thousand_topics_are_shown_in_part_and_found_by_name(
    visit: Callable[[QueueServer], Admin], crowded: QueueServer
) -> None:
    admin = visit(crowded)
    page = admin.open("topics")
    shown = 25 if admin.look.width == PHONE.width else 100
    expect(page.locator("tbody tr")).to_have_count(shown)
    if admin.look.width == PHONE.width:  # some three screens
        assert page.evaluate("document.documentElement.scrollHeight") < 3 * HEIGHT
    admin.press("Next page")
    expect(page.get_by_text(f"{shown + 1} – {2 * shown}")).to_be_visible()
    first = page.locator("tbody tr").first
    expect(first).to_contain_text(f"t-0-{shown:03}")
    first.get_by_role("link").first.click()
    expect(page.locator("h1")).to_contain_text(f"t-0-{shown:03}")
    page.go_back()
    expect(first).to_contain_text(f"t-0-{shown:03}")
    page.get_by_placeholder(admin.text("Filter by name")).fill("9-12")
    expect(page.locator("tbody tr")).to_have_count(10)


@ONE_LOOK
def test_the_last_page_that_there_is_is_shown_when_topics_have_gone(
    visit: Callable[[QueueServer], Admin], crowded: QueueServer
) -> None:
    def gone(route: Route) -> None:
        asked = json.loads(route.request.post_data or "")
        if asked.get("offset", 0) < 200:
            route.fallback()
        else:
            route.fulfill(json={"code": 0, "message": "ok", "data": []})

    admin = visit(crowded)
    page = admin.open("topics")
    for shown in ("101 – 200", "201 – 300"):
        admin.press("Next page")
        expect(page.get_by_text(shown)).to_be_visible()
    page.route("**/topics", gone)
    try:
        expect(page.get_by_text("101 – 200")).to_be_visible()
    finally:
        page.unroute("**/topics")


@ONE_LOOK
def test_an_export_has_each_topic_once_while_counts_change(
    visit: Callable[[QueueServer], Admin], crowded: QueueServer
) -> None:
    def changed(route: Route) -> None:
        asked = json.loads(route.request.post_data or "")
        if asked["limit"] == 1000 and asked["offset"] == 1000:  # the second page of the file
            with Client(crowded.url) as queue:
                queue.push("t-9-999", delay=600)
        route.fallback()

    admin = visit(crowded)
    page = admin.open("topics/delayed")
    # few enough to be counted each time
    page.get_by_placeholder(admin.text("Filter by name")).fill("-9")
    expect(page.locator("tbody tr").first).to_contain_text("-9")
    page.route("**/topics", changed)
    try:
        with page.expect_download() as lines:
            page.get_by_role("button", name="JSON").click()
        saved = lines.value.path().read_text("utf-8").splitlines()
    finally:
        page.unroute("**/topics")
    assert len({json.loads(line)["topic"] for line in saved}) == len(saved) == 1900


def test_topics_whose_due_times_are_not_looked_at_are_not_said_to_have_none(
    visit: Callable[[QueueServer], Admin], crowded: QueueServer
) -> None:
    admin = visit(crowded)
    tomorrow = int(time.time()) + 86_400
    page = admin.open(f"due/{tomorrow}-{tomorrow + 60}")
    most = "Only the 200 topics with the most delayed jobs are looked at."
    expect(page.locator("main p").first).to_have_text(admin.text(most))
    none = admin.text("None of their jobs fall due in this time.")
    expect(page.locator("main .empty")).to_have_text(none)


@ON_PHONE
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
    second_click(page)
    expect(rows.first).to_contain_text("broken")
    only = page.get_by_role("group", name=admin.text("Only"))
    for state, name in (("buried", "broken"), ("paused", "held"), ("limited", "busy")):
        admin.press(state, only)
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text(name)


@ONE_LOOK
def test_each_topic_shows_its_rates_if_they_are_known(
    visit: Callable[[QueueServer], Admin], troubled: QueueServer
) -> None:
    def with_rates(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        for topic in told["data"]:
            topic.pop("rates", None)
            if topic["topic"] == "busy":
                topic["rates"] = {
                    "pushed": 1234.4,
                    "delivered": 3.44,
                    "finished": 0,
                    "failed": 0.123,
                }
        route.fulfill(response=answer, json=told)

    admin = visit(troubled)
    admin.page.route("**/topics", with_rates)
    try:
        rows = admin.open("topics").locator("tbody tr")
        shown = rows.filter(has_text="busy").locator("td").all_inner_texts()
        assert shown[-4:] == ["1,234", "3.4", "0", "0.12"]
        shown = rows.filter(has_text="healthy").locator("td").all_inner_texts()
        assert shown[-4:] == [""] * 4
    finally:
        admin.page.unroute("**/topics")


def test_the_overview_counts_and_foretells(
    visit: Callable[[QueueServer], Admin], troubled: QueueServer
) -> None:
    admin = visit(troubled)
    page = admin.open("")
    delayed = page.locator(".tile:has(.dot.delayed) .value")
    expect(delayed).not_to_be_empty()
    expect(delayed).to_have_text(re.compile(r"^[\d,]+$"))  # the count comes after the page
    before = int(delayed.inner_text().replace(",", ""))
    with Client(troubled.url) as queue:
        queue.push_many([Job(topic="busy", delay=900) for _ in range(7)])
    expect(delayed).to_have_text(f"{before + 7:,}")  # without a reload
    expect(page.locator(".chart canvas").first).to_be_visible()


def test_a_figure_leads_to_its_parts(
    visit: Callable[[QueueServer], Admin], troubled: QueueServer
) -> None:
    admin = visit(troubled)
    page = admin.open("")
    tiles = page.locator("a.tile")
    expect(tiles).to_have_count(7)
    tiles.filter(has_text=admin.text("delayed")).click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text(admin.text("delayed"))
    expect(page.locator("tbody tr").first).to_contain_text("busy")
    page.go_back()
    tiles.filter(has_text=admin.text("buried")).click()
    expect(page.locator("h1")).to_contain_text(admin.text("Dead letters"))


@ON_PHONE
def test_a_topic_shows_its_counts_and_begins_with_what_matters(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push_many([Job(topic=topic, retain=600) for _ in range(3)])
    queue.finish_many(queue.pop_many(topic, count=3, wait=5))
    bury(queue, topic, 2)
    queue.push_many([Job(topic=topic, delay=600) for _ in range(1000)])
    page = admin.open(f"topic/{topic}")
    states = page.locator(".card .choices", has_text=admin.text("reserved")).get_by_role("button")
    delayed, ready, reserved, buried = map(admin.text, ("delayed", "ready", "reserved", "buried"))
    others = map(admin.text, ("finished", "cancelled", "expired", "dropped", "all"))
    expect(states).to_have_text([f"{delayed} 1,000", ready, reserved, f"{buried} 2", *others])
    expect(states.locator("xpath=self::*[@aria-pressed='true']")).to_have_text(f"{buried} 2")
    expect(page.locator("tbody tr")).to_have_count(2)
    admin.list_only("finished")
    expect(page.locator("tbody tr")).to_have_count(3)


@ON_PHONE
def test_a_topic_shows_the_groups_that_wait_and_leads_to_their_jobs(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.limit(topic, group_concurrency=1)
    heavy, light, new = f"{topic} heavy", f"{topic} <light>", f"{topic} new"
    queue.push_many([Job(topic=topic, group=heavy) for _ in range(4)])
    queue.push_many([Job(topic=topic, group=light) for _ in range(2)])
    assert len(queue.pop_many(topic, count=10, wait=5)) == 2
    queue.push(topic, group=new)
    page = admin.open(f"topic/{topic}")
    groups = page.locator("section", has=page.get_by_role("heading", name=admin.text("Groups")))
    says = (
        "Groups with jobs that can be taken: 1; held by a limit or a retry: 2. Those with the most:"
    )
    expect(groups.locator("p")).to_have_text(admin.text(says))
    expect(groups.locator("tbody a")).to_have_text([heavy, light, new])
    expect(groups.locator("tbody td.number")).to_have_text(["3", "1", "1", "1", "1", "0"])
    groups.get_by_role("link", name=light).click()
    expect(page.locator("tbody tr")).to_have_count(2)
    queue.limit(topic, group_concurrency=None)


@ON_PHONE
def test_jobs_are_listed_from_a_time_on_that_is_written_as_it_is_shown(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, id=f"{topic}-early", delay=600)
    queue.push(topic, id=f"{topic}-late", delay=86_400)
    page = admin.open(f"topic/{topic}")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    shown = rows.nth(1).locator("td.time").inner_text()
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", shown)
    start = admin.field("Due from")
    for text in ("tomorrow", "2026-02-30"):
        start.fill(text)
        start.press("Tab")
        wrong = admin.text(f"“{text}” is not a time; write 2026-11-23 or 2026-11-23 04:45")
        expect(page.get_by_role("alert").filter(has_text=wrong)).to_be_visible()
    start.fill(shown[-19:-3])
    start.press("Tab")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(f"{topic}-late")


def test_a_click_on_a_bar_lists_its_jobs(admin: Admin, queue: Client, topic: str) -> None:
    span_s = 86_400
    step_s = span_s / 60  # of a bar
    if (left_s := step_s - time.time() % step_s) < 30:  # the page must begin with the same bar
        time.sleep(left_s)
    begins_s = time.time() // step_s * step_s
    due_s = begins_s + 30.5 * step_s
    queue.push_many([Job(topic=topic, id=f"{topic}-{n}", due=due_s) for n in range(3)])
    page = admin.open(f"topic/{topic}")
    day = admin.button("1d")
    day.click()
    expect(day).to_have_attribute("aria-pressed", "true")
    chart = page.get_by_role("img", name=admin.text("Due times")).locator(".u-over")
    box = chart.bounding_box()
    assert box
    place = (due_s - begins_s) / span_s * box["width"]
    chart.click(position={"x": place, "y": box["height"] - 3})
    expect(page.locator("tbody tr")).to_have_count(3)
    assert "delayed" in page.url


@ONE_LOOK
def test_states_and_reasons_that_only_a_newer_server_knows_are_no_hindrance(
    admin: Admin, queue: Client, topic: str
) -> None:
    def of_a_newer_server(route: Route) -> None:
        told = route.fetch().json()
        for job in told["data"].get("jobs", ()):
            job["state"] = "parked"
        for one in told["data"].get("attention", ()):
            one["why"].append("parked")
        route.fulfill(json=told)

    queue.push(topic, id=topic, delay=60)
    bury(queue, topic, 1)
    page = admin.page
    for path in ("list", "stats"):
        page.route(f"**/{path}", of_a_newer_server)
    admin.open(f"topic/{topic}")
    expect(page.locator("td .state").first).to_have_text("parked")
    admin.open("")
    expect(page.locator("tbody tr", has_text=topic)).to_contain_text("1 job buried")
    for path in ("list", "stats"):
        page.unroute(f"**/{path}")


@IN_BOTH
def test_what_was_chosen_is_there_again_after_back(admin: Admin, queue: Client, topic: str) -> None:
    queue.push(topic, id=topic, delay=600)
    page = admin.open("topics")
    filter_ = page.get_by_placeholder(admin.text("Filter by name"))
    filter_.fill(topic)
    link = page.locator("tbody tr a", has_text=topic)
    expect(page.locator("tbody tr")).to_have_count(1)
    link.click()
    expect(page.locator("h1")).to_contain_text(topic)
    pressed = page.locator(".card .choices").last.locator("[aria-pressed=true]")
    bound = page.locator("input.moment").first
    bound.fill("2001-09-09")
    bound.press("Enter")
    for state in ("delayed", "all"):
        admin.list_only(state)
        page.locator("tbody tr a", has_text=topic).click()
        expect(page.locator(".timeline")).to_be_visible()
        page.go_back()
        expect(pressed).to_have_text(re.compile(admin.text(state)))
        expect(bound).to_have_value("2001-09-09 00:00:00")
    page.go_back()
    expect(filter_).to_have_value(topic)
    expect(page.locator("tbody tr")).to_have_count(1)


@ONE_LOOK
def test_limits_change_only_as_they_are_typed(admin: Admin, queue: Client, topic: str) -> None:
    queue.push(topic, delay=60)
    queue.limit(topic, rate=50, burst=40)
    page = admin.open(f"topic/{topic}")
    for typed in ("1.000.000/s", "1,500/s", "50/s,100", "50/s, 10, 20"):
        admin.confirm("Limit", answer=typed)
        wrong = typed.rpartition(" ")[2]
        expect(page.get_by_role("alert").last).to_contain_text(f"“{wrong}” is not a limit")
    admin.confirm("Limit", answer="50/s, 10")
    expect(page.locator("h1 .tag")).to_have_text("limited: 50/s, 10")
    [counts] = queue.topics(topic)
    assert counts.limit is not None
    assert (counts.limit.rate, counts.limit.burst, counts.limit.concurrency) == (50, 40, 10)


@ONE_LOOK
def test_limits_that_were_not_typed_stay_as_somebody_else_has_changed_them(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, delay=60)
    queue.limit(topic, rate=50)
    page = admin.open(f"topic/{topic}")
    limited = page.locator("h1 .tag")
    admin.press("Limit")
    queue.limit(topic, rate=5, concurrency=2)
    expect(limited).to_have_text("limited: 5/s, 2")
    admin.agree("Limit")
    admin.press("Limit")
    queue.limit(topic, rate=4)
    page.locator("dialog input").fill("5/s, 3")
    admin.agree("Limit")
    expect(limited).to_have_text("limited: 4/s, 3")
    admin.press("Undo")
    expect(limited).to_have_text("limited: 4/s, 2")
    queue.limit(topic, rate=None, concurrency=None)


def test_a_topic_is_paused_resumed_limited_and_purged_by_its_name(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, delay=60)
    page = admin.open(f"topic/{topic}")
    tags = page.locator("h1 .tag")
    answer = page.locator("dialog input")
    admin.confirm("Pause", answer="10m")
    expect(tags).to_have_text(admin.pattern("paused until {0}"))
    admin.press("Resume")
    expect(tags).to_have_count(0)
    admin.confirm("Limit", answer="0.5/s, 10")
    expect(tags).to_have_text(admin.text("limited: 0.5/s, 10"))
    admin.press("Limit")
    expect(answer).to_have_value("0.5/s, 10")
    answer.fill("10, 2/group, order")
    admin.agree("Limit")
    expect(tags).to_have_text(admin.text("limited: 10, 2/group, order"))
    [counts] = queue.topics(topic)
    assert counts.limit is not None
    assert (counts.limit.rate, counts.limit.group_concurrency, counts.limit.group_order) == (
        *(None, 2),
        True,
    )
    admin.confirm("Limit", answer="")
    expect(tags).to_have_count(0)
    admin.press("Purge")
    purge = admin.button("Purge", page.locator("dialog"))
    expect(purge).to_be_disabled()
    answer.fill(topic)
    purge.click()
    expect(admin.said("Done: 1 job.")).to_be_visible()
