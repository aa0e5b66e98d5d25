"""Jobs that are ticked on the page, or all that match, and the actions on them."""

import json
from csv import DictReader
from typing import Final

import pytest
from playwright.sync_api import Page, Route, expect

from delayqueue.client import Client, Job
from tests.browser.conftest import ON_PHONE, ONE_LOOK, Admin, bury, holding, let_go

# notes what the bar says whenever it changes
WATCH_PROGRESS: Final = """() => {
    window.seen = [];
    const look = () => document.querySelectorAll("dialog progress").forEach((bar) => seen.push(bar.value));
    const all = {subtree: true, childList: true, attributes: true};
    new MutationObserver(look).observe(document.querySelector("dialog"), all);
}"""
FORMULA: Final = '=HYPERLINK("https://elsewhere.example")'
# what stands in a job, and in a cell
DEFUSED: Final = {
    "\n=1+1": "'\n'=1+1",
    "＝1+1": "'＝1+1",
    ";=1+1": "';'=1+1",
    'a;"@b': "a;'\"@b",
    "\tx": "'\tx",
    '{"a":-5,"b":[1,-5]}': '{"a":-5,"b":[1,-5]}',
}


def counts(queue: Client, topic: str) -> tuple[int, ...]:
    """Delayed, ready, reserved, buried."""
    found = [one for one in queue.topics() if one.topic == topic]
    return next(((one.delayed, one.ready, one.reserved, one.buried) for one in found), (0, 0, 0, 0))


def tick(page: Page, *rows: int) -> None:
    for row in rows:
        page.locator("tbody tr").nth(row).get_by_role("checkbox").check()


@ON_PHONE
def test_what_is_ticked_is_kicked_rescheduled_and_deleted(
    admin: Admin, queue: Client, topic: str
) -> None:
    bury(queue, topic, 5)
    page = admin.open(f"topic/{topic}")
    tick(page, 0, 1)
    expect(admin.said("2 selected")).to_be_visible()
    admin.confirm("Kick")
    expect(admin.said("Done: 2 jobs.")).to_be_visible()
    expect(admin.said("{0} selected")).to_have_count(0)
    assert counts(queue, topic) == (0, 2, 0, 3)
    admin.list_only("buried")
    expect(page.locator("tbody tr")).to_have_count(3)
    tick(page, 1)
    admin.press("Reschedule")
    admin.field("make all of them due this long from now").check()
    page.locator("dialog input[name=answer]").fill("3h")
    admin.agree("Reschedule")
    expect(admin.said("Done: 1 job.")).to_be_visible()
    assert counts(queue, topic) == (1, 2, 0, 2)
    expect(page.locator("tbody tr")).to_have_count(2)
    admin.field("Select all shown").check()
    admin.confirm("Delete")
    expect(page.locator("tbody tr")).to_have_count(0)
    assert counts(queue, topic) == (1, 2, 0, 0)


def test_all_that_a_filter_matches_are_deleted_after_their_number_was_typed(
    admin: Admin, queue: Client, topic: str
) -> None:
    bury(queue, topic, 120)
    queue.push_many([Job(topic=topic, delay=900) for _ in range(3)])
    page = admin.open(f"topic/{topic}")
    admin.list_only("buried")
    admin.press("Select all 120")
    expect(admin.said("120 selected")).to_be_visible()
    admin.press("Delete")
    yes = admin.button("Delete", page.locator("dialog"))
    expect(yes).to_be_disabled()
    page.locator("dialog input").fill("120")
    yes.click()
    expect(admin.said("Done: 120 jobs.")).to_be_visible()
    assert counts(queue, topic) == (3, 0, 0, 0)


@ON_PHONE
def test_the_jobs_of_a_group_are_found_by_it(admin: Admin, queue: Client, topic: str) -> None:
    group = 'customer "7"'
    jobs = [Job(topic=topic, delay=900, group=each) for each in (group, group, "customer-8")]
    queue.push_many([*jobs, Job(topic=f"{topic}-other", delay=900, group=group)])
    page = admin.open(f"job/{jobs[0].id}")
    page.locator("dl").get_by_role("link", name=group).click()
    title = {"en": f"Jobs of the group “{group}” {topic}", "zh": f"分组“{group}”的任务 {topic}"}
    expect(page.locator("h1")).to_have_text(title[admin.look.language])
    expect(page.locator("tbody tr")).to_have_count(2)


@ON_PHONE
def test_how_far_many_are_is_shown(admin: Admin, queue: Client, topic: str) -> None:
    queue.push_many([Job(topic=topic, delay=900) for _ in range(600)])
    page = admin.open(f"topic/{topic}")
    admin.list_only("delayed")
    admin.press("Select all 600")
    expect(admin.said("600 selected")).to_be_visible()
    page.evaluate(WATCH_PROGRESS)
    admin.press("Kick")
    asked = "Make 600 jobs ready now. The retry schedule starts over."
    expect(page.locator("dialog p")).to_have_text(admin.text(asked))
    admin.agree("Kick")
    expect(admin.said("Done: 600 jobs.")).to_be_visible()
    assert page.evaluate("[...new Set(seen)]") == [0, 500, 600]
    assert counts(queue, topic) == (0, 600, 0, 0)


@ONE_LOOK
def test_the_escape_key_stops_it_on_the_way(admin: Admin, queue: Client, topic: str) -> None:
    queue.push_many([Job(topic=topic, delay=900) for _ in range(600)])
    page = admin.open(f"topic/{topic}")
    admin.press("Select all 600")
    expect(admin.said("600 selected")).to_be_visible()
    with holding(page, "delete") as next_one:
        admin.press("Delete")
        page.locator("dialog input").fill("600")
        admin.agree("Delete")
        first = next_one()
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_be_hidden()
        first.continue_()
        expect(admin.said("Done: 500 jobs.")).to_be_visible()
    assert counts(queue, topic) == (100, 0, 0, 0)


def test_what_is_refused_is_named_with_the_reason_and_stays_ticked(
    admin: Admin, queue: Client, topic: str
) -> None:
    ids = [queue.push(topic, id=f"{topic}-{n}", delay=900, tags=[topic]) for n in range(3)]
    page = admin.open(f"tag/{topic}")
    admin.press("Select all matching jobs")
    expect(admin.said("3 selected")).to_be_visible()
    queue.delete(ids[1])
    admin.confirm("Kick")
    expect(page.locator("dialog h2")).to_have_text(admin.text("Done: 2 jobs."))
    expect(page.locator("dialog li")).to_have_text(f"{ids[1]}: {admin.text('no such job')}")
    admin.agree("Close")
    expect(admin.said("1 selected")).to_be_visible()
    assert counts(queue, topic) == (0, 2, 0, 0)


@ONE_LOOK
def test_jobs_of_a_call_without_an_answer_are_not_said_to_be_refused(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push_many([Job(topic=topic, delay=900) for _ in range(501)])  # two calls
    page = admin.open(f"topic/{topic}")
    admin.press("Select all 501")
    expect(admin.said("501 selected")).to_be_visible()
    page.route("**/kick", lambda route: route.abort())
    admin.confirm("Kick")
    expect(page.locator("dialog p")).to_have_text("501 were refused, or had no answer:")
    expect(page.locator("dialog li").first).to_contain_text("may have been done all the same")
    admin.agree("Close")
    page.unroute("**/kick")
    admin.complaints.clear()  # the browser's own line about the aborted call


def test_a_list_is_saved_as_csv_without_formulas_and_as_json_lines(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push_many(
        [Job(topic=topic, id=f"{topic}-{n}", body=FORMULA, delay=600) for n in range(60)]
    )
    queue.push(topic, 'said "no",\nthen left', delay=60)
    for number, body in enumerate(DEFUSED):
        queue.push(topic, body, delay=100 + number)
    page = admin.open(f"topic/{topic}")
    with page.expect_download() as csv:
        page.get_by_role("button", name="CSV").click()
    assert csv.value.suggested_filename == f"{topic}.csv"
    with csv.value.path().open(encoding="utf-8-sig", newline="") as file:
        bodies = [row["body"] for row in DictReader(file)]
    assert bodies == ['said "no",\nthen left', *DEFUSED.values(), *[f"'{FORMULA}"] * 60]
    with page.expect_download() as lines:
        page.get_by_role("button", name="JSON").click()
    saved = [json.loads(line) for line in lines.value.path().read_text("utf-8").splitlines()]
    assert [job["body"] for job in saved] == ['said "no",\nthen left', *DEFUSED, *[FORMULA] * 60]


@ONE_LOOK
def test_an_export_that_is_cancelled_saves_nothing(admin: Admin, queue: Client, topic: str) -> None:
    queue.push(topic, delay=60)
    page = admin.open(f"topic/{topic}")
    saved: list[str] = []
    page.on("download", lambda download: saved.append(download.suggested_filename))
    with holding(page, "list") as next_one:
        page.get_by_role("button", name="CSV").click()
        while json.loads((read := next_one()).request.post_data or "")["limit"] != 1000:
            read.continue_()  # the page refreshes itself
        admin.press("Cancel", page.locator("dialog"))
        let_go(page, read)
        expect(page.get_by_role("button", name="CSV")).not_to_have_attribute(
            "aria-disabled", "true"
        )
    expect(admin.said("Saved: {0} rows.")).to_have_count(0)
    assert saved == []


@ONE_LOOK
@pytest.mark.parametrize("after", ["3600", "Fri, 31 Dec 2100 23:59:59 GMT"])
def test_who_would_have_to_wait_long_is_told_so(admin: Admin, after: str) -> None:
    too_many = {"code": 10, "message": "too many requests", "data": None}

    def refuse(route: Route) -> None:
        route.fulfill(status=429, headers={"Retry-After": after}, json=too_many)

    admin.page.route("**/topics", refuse)
    admin.go("topics")
    expect(admin.page.get_by_role("alert")).to_have_text("too many requests")
    admin.page.unroute("**/topics")


@ON_PHONE
def test_reserved_jobs_are_released_as_fast_as_the_server_accepts_it(
    admin: Admin, queue: Client, topic: str
) -> None:
    for _ in range(10):
        queue.push(topic, retry=["1h"])
    assert len(queue.pop_many(topic, count=10, wait=5)) == 10
    page = admin.open(f"topic/{topic}")
    admin.list_only("reserved")
    admin.press("Select all 10")
    too_many = {"code": 10, "message": "too many requests", "data": None}

    def refuse(route: Route) -> None:
        route.fulfill(status=429, headers={"Retry-After": "0"}, json=too_many)

    page.route("**/release", refuse, times=12)
    admin.confirm("Release")
    expect(admin.said("Done: 10 jobs.")).to_be_visible()
    assert counts(queue, topic)[2] == 0
