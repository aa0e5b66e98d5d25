"""What the page can undo for a minute."""

import pytest
from playwright.sync_api import expect

from delayqueue.client import Client, Job
from tests.browser.conftest import ON_PHONE, Admin, bury
from tests.browser.test_registered import one_named
from tests.browser.test_selection import tick


def test_a_pause_a_resume_and_limits_are_undone(admin: Admin, queue: Client, topic: str) -> None:
    queue.push(topic, delay=60)
    queue.limit(topic, rate=50, burst=9)
    page = admin.open(f"topic/{topic}")
    tags = page.locator("h1 .tag")
    limited = admin.text("limited: 50/s")
    admin.confirm("Pause", answer="10m")
    expect(tags).to_have_text([admin.pattern("paused until {0}"), limited])
    admin.press("Undo")
    expect(tags).to_have_text([limited])
    expect(admin.said("Undone.")).to_be_visible()
    queue.pause(topic, length=1000)
    until = queue.topics(topic)[0].paused
    admin.press("Resume")
    expect(tags).to_have_text([limited])
    admin.press("Undo")
    expect(tags).to_have_count(2)
    assert queue.topics(topic)[0].paused == pytest.approx(until, abs=10)
    admin.confirm("Limit", answer="3")
    expect(tags.last).to_have_text(admin.text("limited: 3"))
    admin.press("Undo")
    expect(tags.last).to_have_text(limited)
    limit = queue.topics(topic)[0].limit
    assert limit
    assert (limit.rate, limit.burst, limit.concurrency) == (50, 9, None)
    queue.limit(topic, rate=None)
    queue.resume(topic)


@ON_PHONE
def test_a_job_goes_back_to_its_time_and_a_buried_one_becomes_ready(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, id=topic, delay=3600)
    due = queue.get(topic).due  # type: ignore[union-attr]
    page = admin.open(f"job/{topic}")
    state = page.locator("dd .state")
    admin.press("Kick")
    expect(state).to_have_text(admin.text("ready"))
    admin.press("Undo")
    expect(state).to_have_text(admin.text("delayed"))
    assert queue.get(topic).due == due  # type: ignore[union-attr]
    queue.kick(topic)
    assert queue.pop(topic, wait=5)
    admin.confirm("Bury")
    expect(state).to_have_text(admin.text("buried"))
    admin.press("Undo")
    expect(state).to_have_text(admin.text("ready"))


def test_many_moved_jobs_go_back_unless_that_is_not_certain(
    admin: Admin, queue: Client, topic: str
) -> None:
    jobs = [Job(topic=topic, id=f"{topic}-{n}", delay=3600 * (n + 1)) for n in range(3)]
    queue.push_many(jobs)
    dues = [job.due for job in queue.list_jobs(topic).jobs]
    page = admin.open(f"topic/{topic}")
    undo = admin.button("Undo")

    def move(how: str) -> None:
        admin.press("Reschedule")
        page.get_by_label(admin.pattern(how)).check()
        page.locator("dialog input[name=answer]").fill("2h")
        admin.agree("Reschedule")

    tick(page, 0, 1, 2)
    move("move each job by this much (-1h: earlier)")
    undo.click()
    expect(admin.said("Undone: 3 jobs.")).to_be_visible()
    assert [job.due for job in queue.list_jobs(topic).jobs] == dues
    tick(page, 0, 1, 2)
    move("move each job by this much (-1h: earlier)")
    queue.delete(jobs[2].id)
    undo.click()
    expect(page.locator("dialog li")).to_have_text(f"{jobs[2].id}: {admin.text('no such job')}")
    admin.agree("Close")
    tick(page, 0)
    move("make all of them due this long from now")
    expect(admin.said("Done: 1 job.")).to_be_visible()
    expect(undo).to_have_count(0)
    bury(queue, topic, 1)
    page = admin.open(f"topic/{topic}")
    admin.list_only("buried")
    expect(page.locator("tbody tr")).to_have_count(1)
    tick(page, 0)
    move("move each job by this much (-1h: earlier)")
    expect(page.locator("tbody tr")).to_have_count(0)
    expect(undo).to_have_count(0)


@ON_PHONE
def test_a_subscriber_and_a_schedule_go_on_as_before(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.subscribe(topic, topic, "https://shop.example/paid", secret=f"whsec_{'A' * 32}")
    queue.schedule(topic, topic, cron="30 9 * * *", call="https://shop.example/report")
    for place, state in (("subscribers", "paused since {0}"), ("schedules", "paused")):
        before = one_named(getattr(queue, place)(), topic)
        row = admin.open(place).locator("tbody tr", has_text=topic)
        tag = row.locator(".tag")
        admin.press("Pause", row)
        if place == "subscribers":
            admin.agree("Pause")
        expect(tag).to_have_text(admin.pattern(state))
        admin.press("Undo")
        expect(tag).to_have_count(0)
        assert one_named(getattr(queue, place)(), topic) == before
        admin.press("Pause", row)
        if place == "subscribers":
            admin.agree("Pause")
        admin.press("Resume", row)
        expect(tag).to_have_count(0)
        admin.press("Undo")
        expect(tag).to_have_text(admin.pattern(state))
        assert one_named(getattr(queue, place)(), topic).paused
    queue.unsubscribe(topic)
    queue.unschedule(topic)
