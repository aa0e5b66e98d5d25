"""A ready job whose group is held says by which job, in lists and on its own page."""

from playwright.sync_api import expect

from delayqueue.client import Client, Job
from tests.browser.conftest import IN_BOTH, Admin


@IN_BOTH
def test_a_held_job_says_which_one_its_group_waits_for_and_leads_there(
    admin: Admin, queue: Client, topic: str
) -> None:
    first, second, third = (f"{topic}-<b>{n}" for n in range(3))
    queue.limit(topic, group_order=True)
    queue.push_many(
        [Job(topic=topic, id=each, group=topic, ttr=3600) for each in (first, second, third)]
    )
    held = queue.pop(topic, wait=20)
    assert held
    assert held.id == first
    page = admin.open(f"job/{second}")
    line = page.locator("dd .held")
    expect(line).to_have_text(admin.pattern("held: {0} is in hand, until {1} at the latest"))
    expect(line).to_contain_text(first)
    queue.release(held, delay="2d")
    expect(line).to_have_text(admin.pattern("held: {0} waits for its retry at {1}"))
    details = queue.get(first)
    assert details
    page.evaluate("seconds => { window.due = new Date(seconds * 1000) }", details.due)
    day = page.evaluate("window.due.toLocaleDateString('sv')")  # which writes it as ISO does
    expect(line).to_contain_text(day)
    admin.open(f"topic/{topic}")
    admin.list_only("ready")
    lines = page.locator("td .held")
    expect(lines).to_have_count(2)
    expect(lines.first).to_contain_text(first)
    lines.first.click()
    expect(page.locator("h1")).to_have_text(first)
    expect(page.locator(".held")).to_have_count(0)


@IN_BOTH
def test_the_jobs_of_a_group_that_are_found_say_it_too(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.limit(topic, group_concurrency=1)
    queue.push_many([Job(topic=topic, group=topic, ttr=3600) for _ in range(3)])
    assert queue.pop(topic, wait=20)
    page = admin.open(f"topic/{topic}")
    groups = page.locator("section", has=page.get_by_role("heading", name=admin.text("Groups")))
    groups.get_by_role("link", name=topic).click()
    lines = page.locator("td .held")
    expect(lines).to_have_count(2)
    expect(lines.first).to_have_text(admin.pattern("held: {0} is in hand, until {1} at the latest"))
