"""The page of dead letters, and the page of a single one."""

import json
import re
from typing import Any, Final

import pytest
from playwright.sync_api import Route, expect

from delayqueue.client import Client
from tests.browser.conftest import ON_PHONE, ONE_LOOK, Admin, bury

TRACEBACK: Final = """\
Traceback (most recent call last):
  File "/app/worker.py", line 42, in handle
ValueError: {cause}"""

OLD_BODY: Final = '{\r\n"total": -3}'
OPTIONS: Final[dict[str, Any]] = {"retry": [0.5, 60], "retain": 3600, "expire": 7200}


@ON_PHONE
@pytest.mark.parametrize(
    ("button", "deed", "left"),
    [
        ("Retry", "Make {0} ready now. The retry schedule starts over.", 3),
        ("Delete", "Delete {0}? This cannot be undone.", 0),
    ],
)
def test_a_group_over_all_topics_is_retried_or_dropped(
    admin: Admin, queue: Client, topic: str, button: str, deed: str, left: int
) -> None:
    cause = f"{button} refused by the bank"
    bury(queue, topic, 2, message=TRACEBACK.format(cause=cause))
    bury(queue, f"{topic}-b", 1, message=f"ValueError: {cause}")
    bury(queue, topic, 1, message="another reason")
    page = admin.open("dead")
    row = page.locator("tbody tr", has_text=cause)
    expect(row.locator("td").nth(1)).to_have_text("3")
    expect(row).to_contain_text(f"{topic}-b 1")
    admin.press(button, row)
    asked = admin.text(deed.format(f"3 jobs buried for “ValueError: {cause}”"))
    expect(page.locator("dialog p")).to_have_text(asked)
    admin.agree(button)
    expect(admin.said("Done: 3 jobs.")).to_be_visible()
    expect(row).to_have_count(0)
    counts = queue.topics(topic, f"{topic}-b")
    assert (sum(one.ready for one in counts), sum(one.buried for one in counts)) == (left, 1)


@ON_PHONE
def test_a_list_shows_the_line_of_a_message_that_says_what_happened(
    admin: Admin, queue: Client, topic: str
) -> None:
    bury(queue, topic, 1, message=TRACEBACK.format(cause="from elsewhere"))
    bury(queue, topic, 1, message='KeyError: from our worker\n  File "w.py", line 7\n    pay()')
    bury(queue, topic, 1)
    page = admin.open(f"topic/{topic}")
    admin.list_only("buried")
    expect(page.locator("tbody td.cut")).to_have_text(
        ["ValueError: from elsewhere", "KeyError: from our worker", ""]
    )
    # an empty one would be a line of its own there
    is_phone = admin.look.width < 600
    expect(page.locator("tbody td.cut").last).to_be_visible(visible=not is_phone)


def test_a_traceback_keeps_its_lines_and_the_job_is_retried_with_another_body(
    admin: Admin, queue: Client, topic: str
) -> None:
    pushed = {"tags": ["order:7"], "priority": 9, "group": "g", "ttr": 20, **OPTIONS}
    queue.push(topic, OLD_BODY, id=topic, **pushed)
    job = queue.pop(topic, wait=5)
    assert job
    queue.bury(job, message=TRACEBACK.format(cause="-3"))
    page = admin.open(f"job/{topic}")
    shown = page.get_by_text(TRACEBACK.format(cause="-3"), exact=True)
    expect(shown).to_have_count(1)
    expect(shown).to_have_css("white-space", "pre-wrap")
    expect(shown).to_have_css("font-family", re.compile("monospace"))
    admin.link("Clone").click()
    admin.press("Push")
    copy = page.locator("form p a").inner_text()
    page.go_back()
    admin.link("Edit and retry").click()
    admin.field("Body").fill('{"total": 3')
    admin.press("Retry")
    warning = admin.pattern("The old body was JSON, but the new one is not: {0}")
    expect(page.locator("dialog").get_by_role("alert")).to_have_text(warning)
    admin.press("Cancel")
    admin.field("Body").fill('{\n"total": 3}')
    expect(page.locator("form .warning")).to_have_count(0)
    admin.press("Retry")
    expect(page.locator("dd .state")).to_have_text(admin.text("ready"))
    failed = page.locator(".timeline li.bad")
    expect(failed).to_contain_text(TRACEBACK.format(cause="-3"))
    for job_id, body, attempts in ((topic, '{\r\n"total": 3}', 1), (copy, OLD_BODY, 0)):
        found = queue.get(job_id, options=True)
        assert found
        assert (found.retry, found.retain) == ((0.5, 60.0), 3600)
        assert found.expires == pytest.approx(found.due + 7200, abs=0.01)
        assert (found.body, found.tags, found.priority) == (body, ("order:7",), 9)
        assert found.group == "g"
        assert (found.ttr, len(found.attempts)) == (20, attempts)


@ONE_LOOK
def test_the_body_that_somebody_else_has_retried_a_job_with_is_not_overwritten_unasked(
    admin: Admin, queue: Client, topic: str
) -> None:
    bury(queue, topic, 1)
    [letter] = queue.list_jobs(topic).jobs
    page = admin.open(f"edit/{letter.id}")
    admin.field("Body").fill("mine")
    queue.kick(letter.id, body="theirs")
    job = queue.pop(topic, wait=5)
    assert job
    queue.bury(job)
    admin.press("Retry")
    expect(page.locator("dialog").get_by_role("alert")).to_contain_text("Somebody else")
    admin.press("Cancel")
    now = queue.get(letter.id)
    assert now
    assert now.body == "theirs"
    admin.press("Retry")
    admin.agree("Retry anyway")
    expect(page.locator("pre")).to_have_text("mine")


@ONE_LOOK
def test_a_topic_may_have_the_name_of_something_in_javascript(admin: Admin) -> None:
    def two_pages(route: Route) -> None:
        cursor = json.loads(route.request.post_data or "")["cursor"]
        group = {"reason": "x", "count": 2, "first": 1.8e9, "last": 1.8e9, "ids": ["a"]}
        groups = [group | {"counts": [0] * 24, "topics": {"constructor" if cursor else "mail": 2}}]
        data = {"groups": groups, "cursor": "" if cursor else "next"}
        route.fulfill(json={"code": 0, "message": "ok", "data": data})

    admin.page.route("**/buried", two_pages)
    try:
        page = admin.open("dead")
        expect(page.locator("tbody td").first).to_contain_text("constructor 2")
    finally:
        admin.page.unroute("**/buried")


def test_a_group_has_a_chart_and_a_note_for_all_who_look(
    admin: Admin, queue: Client, topic: str
) -> None:
    letters = str.maketrans("0123456789", "ghijklmnop")  # numbers do not tell reasons apart
    reason = f"nobody opened {topic.translate(letters)}"
    bury(queue, topic, 3, message=reason)
    page = admin.open("dead")
    row = page.locator("tbody tr", has_text=reason)
    expect(row.locator("svg")).to_have_attribute(
        "aria-label", admin.text("3 of them were buried in the last 1d")
    )
    admin.press("Note", row)
    page.locator("dialog input").fill("being fixed, JIRA-7")
    admin.agree("Save")
    expect(row.locator(".note")).to_contain_text("being fixed, JIRA-7 anybody")
    expect(row.locator(".note")).to_have_css("border-left-width", "3px")
    [group] = queue.buried(topic).groups
    assert group.note
    assert group.note.text == "being fixed, JIRA-7"
    admin.press("Note", row)
    expect(page.locator("dialog input")).to_have_value("being fixed, JIRA-7")
    queue.note(reason, "fixed, retry them")
    admin.agree("Save")  # of the note that was not touched
    admin.press("Note", row.filter(has_text="fixed, retry them"))
    page.locator("dialog input").fill("")
    admin.agree("Save")
    expect(row.locator(".note")).to_have_count(0)
    in_tile = admin.open("").locator(".tile .note").first
    expect(in_tile).to_have_css("border-left-width", "0px")  # another thing of this name
