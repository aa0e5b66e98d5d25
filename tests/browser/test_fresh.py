"""The page at /admin refreshes itself while people use it: nothing that they have their hands on jumps away."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from delayqueue.client import Client
from tests.browser.conftest import ON_PHONE, ONE_LOOK, Admin, bury, expect_focus, tab_to
from tests.processes import Processes, QueueServer, StoreServer

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
    admin.list_only("all")
    page.set_viewport_size({"width": admin.look.width, "height": 500})
    page.evaluate("scrollTo(0, 200)")
    row = page.locator("tbody tr").first
    job_id = row.locator("a").inner_text()
    admin.button("Limit").evaluate("button => button.focus({preventScroll: true})")
    row.get_by_role("cell", name="the shop's door is shut").evaluate(SELECT)
    for more in range(1, 4):
        queue.push(topic, id=f"{topic}-{more}", delay=900)
        expect(page.locator("tbody tr")).to_have_count(3 + more)
    assert page.evaluate("getSelection().toString()") == "the shop's door is shut"
    assert page.evaluate("scrollY") == 200
    expect_focus(page, admin.text("Limit"))
    expect(page.locator("tbody tr a").first).to_have_text(job_id)


@ON_PHONE
def test_a_dialog_and_what_was_typed_outlive_a_refresh(
    admin: Admin, queue: Client, topic: str
) -> None:
    page = admin.open(f"topic/{topic}")
    admin.press("Pause")
    page.keyboard.type("12")
    queue.push(topic, delay=900)
    expect(page.locator("tbody tr")).to_have_count(1)
    page.keyboard.type("m")
    page.keyboard.press("Enter")
    expect(page.locator("h1 .tag")).to_have_text(admin.pattern("paused until {0}"))


@ONE_LOOK
def test_a_question_goes_with_its_page(admin: Admin, queue: Client, topic: str) -> None:
    queue.push(topic, delay=900)
    page = admin.open("topics")
    admin.open(f"topic/{topic}")
    admin.press("Purge")
    expect(page.locator("dialog")).to_be_visible()
    page.go_back()
    expect(page.locator("h1")).to_have_text("Topics")
    expect(page.locator("dialog")).to_be_hidden()


@ONE_LOOK
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
        expect_focus(page, pressed)  # the same button has the opposite text
    walk(page, "ready 1")
    expect_focus(page, "ready 1")
    tab_to(page, "Select all shown")
    page.keyboard.press("Space")
    expect(page.get_by_text("1 selected")).to_be_visible()
    walk(page, "Purge")
    page.keyboard.type(topic)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Done: 1 job.")).to_be_visible()
    expect_focus(page, "Purge")


@ONE_LOOK
def test_search_tags_dead_letters_subscribers_and_schedules_need_no_mouse(
    visit: Callable[[QueueServer], Admin], processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server, redis__db=redis_server.new_database())
    page = visit(server).open("")
    with Client(server.url) as queue:
        bury(queue, "mail", 1, message="refused")
        queue.push("mail", id="order-1", delay=900, tags=["user:7"])
    fill(page, {"Id, tag:… ( / )": "rder-1"})
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    walk(page, "order-1")
    expect(page.locator("dd .tag")).to_be_visible()
    walk(page, "user:7")
    expect(page.locator("tbody tr")).to_have_count(1)
    walk(page, "Cancel all")
    say_yes(page)
    expect(page.get_by_text("Done: 1 job.")).to_be_visible()
    walk(page, "Dead letters")
    expect(page.locator("tbody tr")).to_have_count(1)
    walk(page, "Retry")
    say_yes(page)
    expect(page.locator("main .empty")).to_have_text("No dead letters.")
    walk(page, "Subscribers")
    walk(page, "Add")
    page.keyboard.type("pdf")  # the first field has the focus
    fill(page, {"Topic": "paid", "URL": "https://shop.example/paid"})
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    walk(page, "Pause")
    say_yes(page)
    expect(page.locator("tbody .tag")).to_contain_text("paused since")
    walk(page, "Schedules")
    expect(page.locator("main .empty")).to_have_count(1)
    walk(page, "Add")
    page.keyboard.type("sweep")
    fill(page, {"Topic": "sweep", "or every (such as 15m)": "15m"})
    walk(page, "Show the next ten times")
    expect(page.locator("ol.times li")).to_have_count(10)
    walk(page, "Save")
    expect(page.locator("tbody tr")).to_have_count(1)
    walk(page, "Run now")
    say_yes(page)
    expect(page.locator("dialog a")).to_contain_text("sweep@")
    server.close()


@ON_PHONE
def test_the_focus_of_a_row_that_goes_falls_to_the_content(
    admin: Admin, queue: Client, topic: str
) -> None:
    queue.push(topic, id=topic, delay=900)
    page = admin.open(f"topic/{topic}")
    page.locator("tbody a").focus()
    queue.delete(topic)
    expect(page.locator("main")).to_be_focused()


def fill(page: Page, texts: dict[str, str]) -> None:
    """Type into the fields of these names."""
    for name, text in texts.items():
        tab_to(page, name)
        page.keyboard.type(text)


def say_yes(page: Page) -> None:
    """Press Enter at a question: the focus is on its confirming button."""
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Enter")


def walk(page: Page, name: str) -> None:
    """Go to the element with this name and press it."""
    tab_to(page, name)
    page.keyboard.press("Enter")
