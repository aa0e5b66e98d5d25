"""The page at /admin renews itself under the hands of those who use it: nothing they hold jumps away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.browser.conftest import bury, expect_focus, press, tab_to

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from delayqueue.client import Client
    from tests.browser.conftest import Admin

SELECT = """cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
}"""


def test_selection_focus_and_scroll_place_outlive_three_refreshes(
    admin: Admin, queue: Client, topic: str
) -> None:
    bury(queue, topic, 3, message="the shop's door is shut")
    page = admin.open(f"topic/{topic}")
    page.set_viewport_size({"width": 1280, "height": 500})
    page.mouse.wheel(0, 200)
    page.wait_for_function("scrollY === 200")
    row = page.locator("tbody tr").first
    job_id = row.locator("a").inner_text()
    page.get_by_role("button", name="Limit").evaluate(
        "button => button.focus({preventScroll: true})"
    )
    row.get_by_role("cell", name="the shop's door is shut").evaluate(SELECT)
    for more in range(1, 4):
        queue.push(topic, id=f"{topic}-{more}", delay=900)
        expect(page.locator("tbody tr")).to_have_count(3 + more)
    assert page.evaluate("getSelection().toString()") == "the shop's door is shut"
    assert page.evaluate("scrollY") == 200
    expect_focus(page, "Limit")
    expect(page.locator("tbody tr a").first).to_have_text(job_id)


def test_a_dialog_and_what_was_typed_outlive_a_refresh(
    admin: Admin, queue: Client, topic: str
) -> None:
    page = admin.open(f"topic/{topic}")
    press(page, "Pause")
    page.keyboard.type("12")
    queue.push(topic, delay=900)
    expect(page.locator("tbody tr")).to_have_count(1)
    page.keyboard.type("m")
    page.keyboard.press("Enter")
    expect(page.locator("h1 .tag")).to_contain_text("paused until")


def test_the_keyboard_alone_does_what_is_to_be_done(
    admin: Admin, queue: Client, topic: str
) -> None:
    page = admin.open("")
    walk(page, "Push a job")
    tab_to(page, "Topic")
    page.keyboard.type(topic)
    tab_to(page, "Body")
    page.keyboard.type("Hello")
    walk(page, "Push")
    expect(page.locator("form p a")).to_be_visible()
    tab_to(page, page.locator("form p a").inner_text())
    page.keyboard.press("Enter")
    walk(page, "Reschedule")
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("0s")
    page.keyboard.press("Enter")
    expect(page.locator("dd .state")).to_have_text("ready")
    expect_focus(page, "Reschedule")
    walk(page, topic)
    for button, pressed in (("Pause", "Resume"), ("Resume", "Pause")):
        if button == "Pause":
            walk(page, button)
        page.keyboard.press("Enter")
        expect_focus(page, pressed)  # the same button says the other thing
    walk(page, "ready")
    expect_focus(page, "ready")
    tab_to(page, "Select all that are shown")
    page.keyboard.press("Space")
    expect(page.get_by_text("1 selected")).to_be_visible()
    walk(page, "Purge")
    page.keyboard.type(topic)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Done: 1 jobs.")).to_be_visible()
    expect_focus(page, "Purge")


def test_the_focus_of_a_row_that_goes_falls_to_the_content(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, id=topic, delay=900)
    page = admin.open(f"topic/{topic}")
    page.locator("tbody a").focus()
    queue.delete(topic)
    expect(page.locator("main")).to_be_focused()


def walk(page: Page, name: str) -> None:
    """Go to what has this name and press it."""
    tab_to(page, name)
    page.keyboard.press("Enter")
