"""Subscribers are tried, paused and inspected, schedules previewed and run."""

import json
import re
from collections.abc import Sequence
from csv import DictReader
from dataclasses import replace
from email.message import Message
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import expect

from delayqueue.client import Client
from tests.browser.conftest import (
    IN_BOTH,
    ON_PHONE,
    ONE_LOOK,
    Admin,
    bury,
    holding,
    let_go,
    second_click,
)
from tests.partner import Answer, Partner

WRONG: Final = (
    "“X-Key:” is not a header with a value; write Name: value. "
    "Values that were saved before are not shown: type them again."
)


class Shop(Partner):
    """Says yes to trials only."""

    def take(self, path: str, headers: Message, body: str) -> Answer:
        closed = super().take(path, headers, body)
        return Answer(200, "thanks for trying") if "delay-queue-trial" in headers else closed


def test_a_webhook_is_tried_paused_and_resumed_and_its_failures_are_seen(
    admin: Admin, queue: Client, topic: str
) -> None:
    with Shop(Answer(503, "closed")) as shop:
        queue.subscribe(topic, topic, shop.url, retry=[3600])
        page = admin.open("subscribers")
        row = page.locator("tbody tr", has_text=topic)
        admin.confirm("Try", row)
        expect(page.locator("dialog dl")).to_contain_text("200")
        expect(page.locator("dialog dl")).to_contain_text("thanks for trying")
        expect(page.locator("dialog h2")).to_have_text(admin.text("The call succeeded"))
        admin.agree("Close")
        expect(row).to_contain_text(admin.text("none"))  # a trial does not count
        admin.press("Pause", row)
        ask = f"Pause “{topic}”? All jobs of the topic “{topic}” will wait for it; other topics are not affected."
        expect(page.locator("dialog p")).to_have_text(admin.text(ask))
        admin.agree("Pause")
        expect(row).to_contain_text(admin.pattern("paused since {0}"))
        job_id = queue.push(topic)
        admin.press("Resume", row)
        expect(row).not_to_contain_text(admin.pattern("paused since {0}"))
        failed = admin.pattern("attempt 1 failed after {1}")
        expect(admin.open(f"job/{job_id}").locator(".timeline")).to_contain_text(failed)
        expect(page.locator("tbody")).to_contain_text(admin.text("The call failed"))
        admin.open("subscribers")
        expect(row).to_contain_text(admin.text("0 ok, 1 failed"))
        expect(row).to_contain_text("503 closed")
        row.get_by_role("link", name=job_id).click()
        expect(page.locator("h1")).to_have_text(job_id)
    queue.unsubscribe(topic)


@IN_BOTH
def test_who_is_called_and_why_somebody_is_not_is_seen(
    admin: Admin, queue: Client, topic: str
) -> None:
    page = admin.open("calls")
    with Shop(Answer(503, "closed")) as shop:
        job = queue.push(topic, call=shop.url, retry=[3600])
        row = page.locator("tbody tr", has_text=urlsplit(shop.url).netloc)
        expect(row).to_contain_text(admin.text("0 ok, 1 failed"))
        place = row.get_by_text("0 / 10")
        assert place.evaluate("span => span.getClientRects().length") == 1
        expect(row).to_contain_text("503 closed")
    lost = queue.push(topic, call="http://no-such-host.shop.example/", retry=[3600])
    row = page.locator("tbody tr", has_text="no-such-host.shop.example")
    expect(row).to_contain_text("no-such-host.shop.example")
    for one in (job, lost):
        queue.delete(one)


@IN_BOTH
def test_rows_of_an_outbox_that_have_failed_are_seen_at_first_sight(
    admin: Admin, queue: Client, topic: str
) -> None:
    name = f"db1/shop/{topic}"
    queue.whoami(outbox={"name": name, "failed": 2, "reason": "no such <b>topic</b>"})
    row = admin.open("").locator("tbody tr", has_text=name)
    expect(row.locator(".failed")).to_have_text("2")
    expect(row).to_contain_text("no such <b>topic</b>")


def test_lists_are_saved(admin: Admin, queue: Client, topic: str) -> None:
    bury(queue, topic, 1, message=f"refused by {topic}")
    queue.subscribe(topic, f"{topic}-other", "https://shop.example/paid")
    queue.schedule(topic, topic, every=600)
    named = {"topics": "topic", "dead": "topics", "subscribers": "name", "schedules": "name"}
    for place, column in named.items():
        page = admin.open(place)
        if place == "topics":  # there may be too many for one page
            page.get_by_placeholder(admin.text("Filter by name")).fill(topic)
        expect(page.locator("tbody tr", has_text=topic)).not_to_have_count(0)
        with page.expect_download() as csv:
            page.get_by_role("button", name="CSV").click()
        with csv.value.path().open(encoding="utf-8-sig", newline="") as file:
            assert sum(topic in row[column] for row in DictReader(file)) == 1
        with page.expect_download() as lines:
            page.get_by_role("button", name="JSON").click()
        saved = [json.loads(line) for line in lines.value.path().read_text("utf-8").splitlines()]
        assert sum(topic in row[column] for row in saved) == 1
    queue.purge(topic)  # a reason shows a few of its topics
    queue.unsubscribe(topic)
    queue.unschedule(topic)


@ON_PHONE
def test_a_schedule_is_previewed_in_its_zone_run_now_and_removed(
    admin: Admin, queue: Client, topic: str
) -> None:
    page = admin.open("schedules")
    admin.press("Add")
    cron = admin.field("Cron line: minute hour day month weekday")
    fill(admin, {"Name": topic, "Topic": topic, "Time zone": "Asia/Shanghai"})
    cron.fill("30 9 * * 1-5")
    admin.press("Show the next ten times")
    times = page.locator("ol.times li")
    expect(times).to_have_count(10)
    expect(times.first).to_contain_text(re.compile(r"^\d{4}-\d\d-\d\d 09:30:00\+08:00"))
    cron.fill("30 9 * * 6")
    expect(times).to_have_count(0)
    with holding(page, "preview-schedule") as next_one:
        admin.press("Show the next ten times")
        held = next_one()
        cron.fill("30 9 31 2 *")
        let_go(page, held)
    expect(times).to_have_count(0)
    admin.press("Show the next ten times")
    expect(page.get_by_role("alert")).to_contain_text(re.compile("day-of-month|cron 须形如"))
    cron.fill("30 9 * * 1-5")
    admin.press("Save")
    row = page.locator("tbody tr", has_text=topic)
    admin.confirm("Run now", row)
    pushed = page.locator("dialog a").inner_text()
    job = queue.pop(topic, wait=5)
    assert job
    assert job.id == pushed
    queue.finish(job)
    admin.agree("Close")
    admin.confirm("Remove", row)
    expect(row).to_have_count(0)


def test_a_subscriber_is_added_shown_with_what_it_wants_and_removed(
    admin: Admin, queue: Client, topic: str
) -> None:
    page = admin.open("subscribers")
    admin.press("Add")
    fill(admin, {"Name": topic, "Topic": topic, "URL": "https://shop.example/paid"})
    fill(admin, {"The expected answer": "*success*"})
    for field, choice in {"After the last failure": "continue", "Sends": "the event"}.items():
        admin.field(field).select_option(admin.text(choice))
    admin.press("Save")
    row = page.locator("tbody tr", has_text=topic)
    wants = [
        admin.text(f"{text}") for text in ("continues after the last failure", "gets the event")
    ]
    expect(row).to_contain_text(" · ".join([f"{admin.text('expects')} *success*", *wants]))
    admin.confirm("Remove", row)
    expect(row).to_have_count(0)
    assert queue.subscribers(topic) == []


@ON_PHONE
def test_a_subscriber_is_edited_and_keeps_the_rest(admin: Admin, queue: Client, topic: str) -> None:
    rules: dict[str, Any] = {
        "order": 3,
        "timeout": 2.5,
        "retry": [90, 1.5],
        "concurrency": 7,
        "expect": "ok",
    }
    rules |= {"on_failure": "continue", "payload": "event", "secret": f"whsec_{'A' * 32}"}
    rules |= {"method": "PUT", "headers": {"X-Key": "hush"}}
    queue.subscribe(topic, topic, "https://shop.example/old", **rules)
    queue.pause_subscriber(topic)
    before = one_named(queue.subscribers(), topic)
    page = admin.open("subscribers")
    row = page.locator("tbody tr", has_text=topic)
    admin.press("Edit", row)
    expect(page.locator("form.fields input[name=name]")).to_have_attribute("readonly", "")
    fill(admin, {"URL": "https://shop.example/new"})
    queue.subscribe(topic, order=4, if_exists="change")  # by somebody else
    # the secret and the value of the header stay, though the page does not know them
    admin.press("Save")
    expect(row).to_contain_text("https://shop.example/new")
    expect(row).to_contain_text("PUT")
    assert one_named(queue.subscribers(), topic) == replace(
        before, url="https://shop.example/new", order=4
    )
    admin.press("Edit", row)
    headers = page.locator("form.fields textarea[name=headers]")
    expect(headers).to_have_value("X-Key: ")
    headers.fill("X-Shop: 7\nX-Key: ")
    admin.press("Save")
    expect(page.get_by_role("alert")).to_contain_text(admin.text(WRONG))
    headers.fill("X-Shop: 7\nX-Key: abc")
    fill(admin, {"The expected answer": ""})
    admin.press("Save")
    expect(row).to_contain_text("X-Shop, X-Key")
    after = one_named(queue.subscribers(), topic)
    assert (after.headers, after.expect, after.signed) == (
        {"X-Shop": "***", "X-Key": "***"},
        "",
        True,
    )
    queue.unsubscribe(topic)


@ONE_LOOK
def test_more_of_them_than_a_page_holds_are_shown_on_demand(
    admin: Admin, queue: Client, topic: str
) -> None:
    names = [f"{topic}-{number:03}" for number in range(101)]
    for name in names:
        queue.schedule(name, topic, every=600)
    page = admin.open("schedules")
    expect(page.locator("tbody tr", has_text=names[0])).to_have_count(1)
    expect(page.locator("tbody tr", has_text=names[-1])).to_have_count(0)
    admin.press("Show more")
    expect(page.locator("tbody tr", has_text=names[-1])).to_have_count(1)
    for name in names:
        queue.unschedule(name)


def test_a_schedule_is_edited_and_keeps_the_rest(admin: Admin, queue: Client, topic: str) -> None:
    body = '{\r\n  "kind": "sales"\r\n}\r\n'
    queue.schedule(topic, topic, every=5400, body=body, ttr=20, catch_up="skip", group="g")
    before = one_named(queue.schedules(), topic)
    page = admin.open("schedules")
    row = page.locator("tbody tr", has_text=topic)
    admin.press("Edit", row)
    every = admin.field("or every (such as 15m)")
    expect(every).to_have_value("90m")
    every.fill("2h")
    queue.schedule(topic, body="another's", ttr=30, if_exists="change")
    admin.press("Save")
    expect(row).to_contain_text("2h")
    after = one_named(queue.schedules(), topic)
    assert replace(after, next=before.next) == replace(before, every=7200, body="another's", ttr=30)

    admin.press("Pause", row)
    expect(row).to_contain_text(admin.text("paused"))
    assert one_named(queue.schedules(), topic) == replace(after, paused=True, next=None)
    resume = admin.button("Resume", row)
    expect(resume).not_to_have_attribute("aria-disabled", "true")
    resume.hover()
    second_click(page)  # of one on “Pause”: it is not meant for the same button's new text
    admin.press("Resume", row)
    expect(row).not_to_contain_text(admin.text("paused"))
    assert one_named(queue.schedules(), topic) == after
    queue.unschedule(topic)


@ONE_LOOK
def test_the_call_and_the_group_of_a_schedule_are_removed_and_its_times_are_not(
    admin: Admin, queue: Client, topic: str
) -> None:
    call = {"url": "http://shop.example/", "headers": {"X-A": "1"}}
    queue.schedule(topic, topic, every=5400, call=call, group="g")
    page = admin.open("schedules")
    row = page.locator("tbody tr", has_text=topic)
    admin.press("Edit", row)
    for name in ("group", "call", "headers", "every"):
        page.locator(f"form.fields [name={name}]").fill("")
    admin.press("Save")
    expect(page.get_by_role("alert")).to_contain_text("cron")
    page.locator("form.fields [name=every]").fill("2h")
    admin.press("Save")
    expect(row).to_contain_text("2h")
    after = one_named(queue.schedules(), topic)
    assert (after.every, after.call, after.group) == (7200, None, "")
    queue.unschedule(topic)


@ONE_LOOK
def test_an_answer_to_another_form_changes_nothing_in_the_one_that_is_open(
    admin: Admin, queue: Client, topic: str
) -> None:
    for name in "ab":
        queue.schedule(f"{topic}-{name}", topic, every=5400)
    page = admin.open("schedules")
    one, other = (page.locator("tbody tr", has_text=f"{topic}-{name}") for name in "ab")
    body = page.locator("form.fields [name=body]")
    with holding(page, "schedule") as next_one:
        admin.press("Edit", one)
        admin.press("Save")
        held = next_one()
        admin.press("Edit", other)
        body.fill("typed for b")
        let_go(page, held)
    expect(body).to_have_value("typed for b")
    with holding(page, "preview-schedule") as next_one:
        admin.press("Show the next ten times")
        held = next_one()
        admin.press("Edit", one)
        let_go(page, held)
    expect(page.locator("ol.times")).to_have_count(0)
    for name in "ab":
        queue.unschedule(f"{topic}-{name}")


def one_named(entries: Sequence[Any], name: str) -> Any:
    [found] = [one for one in entries if one.name == name]
    return found


def fill(admin: Admin, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        begins = re.compile(rf"^{re.escape(admin.text(name))}")  # others may have the word, too
        admin.page.get_by_label(begins).fill(text)
