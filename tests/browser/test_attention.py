"""What an operator at night is told on the overview, and who did what."""

import json
import re
import time
from typing import Final

import pytest
from playwright.sync_api import Route, expect

from delayqueue.client import Client, Invalid
from delayqueue.errors import Code
from tests.browser.conftest import ON_PHONE, ONE_LOOK, Admin

HELD_S: Final = 10  # by then the servers have told who has a job


def test_a_job_that_hangs_with_its_worker_and_refused_pushes_are_told(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, id=topic, ttr=HELD_S)
    queue.pop(topic, wait=5, worker=f"{topic}@web")
    for _ in range(3):
        with pytest.raises(Invalid):
            queue.push(topic, ttr=-1)
    page = admin.open("")
    rows = page.locator(".troubles tbody tr")
    worker = rows.filter(has_text=f"{topic}@web")
    expect(worker).to_contain_text(admin.pattern("jobs not finished within their TTR: {0}"))
    expect(worker.get_by_role("link", name=topic, exact=True)).to_be_visible()
    refused = rows.filter(has_text=admin.text("Pushes with code 1"))
    expect(refused).to_contain_text(admin.text("invalid request"))
    attempt = page.context.request.post(
        f"{page.url.partition('/admin')[0]}/get", data=json.dumps({"id": topic})
    ).json()["data"]["attempts"][0]
    assert attempt["worker"] == f"{topic}@web"
    page = admin.open(f"job/{topic}")
    expect(page.locator(".timeline")).to_contain_text(f"{topic}@web")
    queue.delete(topic)


@ONE_LOOK
def test_a_topic_that_is_nearly_full_is_told_before_pushes_are_refused(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.limit(topic, max_jobs=5)
    for _ in range(4):
        queue.push(topic, delay=3600)
    page = admin.open("topics")
    admin.press("full")
    row = page.locator("tbody tr", has_text=topic)
    expect(row.locator(".tag")).to_have_text(admin.text("at most 5 jobs"))
    page = admin.open("")
    told = page.locator("tbody tr", has_text=topic)
    expect(told.filter(has_text="4")).to_contain_text("at most 5 jobs; then pushes are refused")

    def tell(route: Route) -> None:
        counted = route.fetch().json()
        for one in counted["data"]["attention"]:
            one["topic"]["delayed"] = 3  # all of them in one of several buckets
        route.fulfill(json=counted)

    page.route("**/stats", tell)
    told = admin.open("").locator("tbody tr", has_text=topic)
    expect(told).to_contain_text("one of its buckets is nearly full, or full, with 3 of at most 5")
    page.unroute("**/stats")
    queue.purge(topic)


@ON_PHONE
def test_a_tags_jobs_go_back_to_their_times_and_the_deed_stands_beside_the_chart(
    admin: Admin, queue: Client, topic: str
) -> None:
    for number in range(3):
        queue.push(topic, id=f"{topic}-{number}", delay=3600 * (number + 1), tags=[topic])
    dues = [job.due for job in queue.list_jobs(topic).jobs]
    page = admin.open(f"tag/{topic}")
    admin.press("Reschedule all")
    page.get_by_label(admin.pattern("move each job by this much (-1h: earlier)")).check()
    page.locator("dialog input[name=answer]").fill("2h")
    admin.agree("Reschedule all")
    expect(admin.said("Done: 3 jobs.")).to_be_visible()
    assert [job.due for job in queue.list_jobs(topic).jobs] == [due + 7200 for due in dues]
    pushed_since = queue.push(topic, delay=9000, tags=[topic])
    due = queue.get(pushed_since).due  # type: ignore[union-attr]
    admin.press("Undo")
    expect(admin.said("Undone: 3 jobs.")).to_be_visible()
    assert queue.get(pushed_since).due == due  # type: ignore[union-attr]
    queue.delete(pushed_since)
    assert [job.due for job in queue.list_jobs(topic).jobs] == dues
    action = f'"tag": "{topic}", "by": 7200'
    page = admin.open("")  # servers tell the past every ten seconds
    expect(page.locator(".marks li", has_text=action)).to_contain_text("reschedule")


@ON_PHONE
def test_lost_jobs_and_refused_connections_are_told(admin: Admin, topic: str) -> None:
    def tell(route: Route) -> None:
        told = route.fetch().json()
        kinds = [("lost", topic), ("connections", ""), ("of-a-newer-server", "x")]
        for kind, name in (*kinds, *[("pushes", str(code.value)) for code in Code if code]):
            one = {"kind": kind, "name": name, "topic": name, "count": 1855, "message": ""}
            told["data"]["troubles"].append(one | {"at": time.time() - 90})
        route.fulfill(json=told)

    admin.page.route("**/stats", tell)
    page = admin.open("")
    rows = page.locator(".troubles tbody tr")
    lost = rows.filter(has_text=admin.text("lost jobs: 1,855"))
    expect(lost.get_by_role("link", name=topic, exact=True)).to_be_visible()
    refused = rows.filter(has_text=admin.text("New connections"))
    expect(refused).to_contain_text(admin.text("refused: 1,855"))
    expect(refused).to_contain_text("max_connections")
    expect(rows.filter(has_text="of-a-newer-server")).to_have_count(0)
    expect(rows.filter(has_text=admin.text("Pushes with code 11"))).to_contain_text(
        admin.text("topic full")
    )
    expect(rows.filter(has_text="code_")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= admin.look.width
    page.unroute("**/stats")


@ON_PHONE
@pytest.mark.parametrize("off_s", [0, -7200, 7200], ids=["right", "back", "forward"])
def test_a_jump_of_the_stores_clock_is_told_wherever_it_has_jumped_to(
    admin: Admin, off_s: int
) -> None:
    """The marks of the history have the times of that clock."""

    def tell(route: Route) -> None:
        told = route.fetch().json()
        mark = {"at": time.time() - 90, "kind": "clock", "lasted": 0, "server": "", "by": ""}
        told["data"]["marks"].insert(0, mark | {"what": ""})
        told["data"]["start"] += off_s
        for each in told["data"]["marks"]:
            each["at"] += off_s
        route.fulfill(json=told)

    admin.page.route("**/history", tell)
    row = (
        admin.open("")
        .locator(".troubles tbody tr")
        .filter(has_text=admin.text("The store's clock"))
    )
    expect(row).to_have_count(1)
    expect(row).to_contain_text(re.compile(r"[12](分|m )"))
    admin.page.unroute("**/history")
