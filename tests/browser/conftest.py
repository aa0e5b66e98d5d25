"""A real Chromium, a server, and jobs to look at."""

import re
import shutil
import time
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from _pytest.mark import ParameterSet
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    Route,
    expect,
    sync_playwright,
)

from delayqueue.client import Client, Job
from tests.browser.looks import ALL, DESK, PHONE, Look
from tests.processes import Processes, QueueServer, StoreServer

HEIGHT: Final = 900
STATUS: Final = re.compile(r"status of (40\d|429|503)")
PATIENCE_MS: Final = 60_000  # a busy machine takes its time
LOOK_MS: Final = 20
expect.set_options(timeout=PATIENCE_MS)


def in_looks(looks: Iterable[Look], usual: Container[Look]) -> list[ParameterSet]:
    """All looks with --every-store, else the usual ones."""
    return [
        pytest.param(look, id=str(look), marks=() if look in usual else pytest.mark.seldom)
        for look in looks
    ]


# a task is tried in one of two looks that differ in everything, a few in both; --every-store tries it in all
ON_PHONE: Final = pytest.mark.parametrize("look", in_looks(ALL, [PHONE]), indirect=True)
IN_BOTH: Final = pytest.mark.parametrize("look", in_looks(ALL, [DESK, PHONE]), indirect=True)
# for tests of things that are the same in every look
ONE_LOOK: Final = pytest.mark.parametrize("look", in_looks([DESK], [DESK]), indirect=True)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium; playwright only drives it."""
    program = shutil.which("chromium")
    assert program, "chromium is not on PATH: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def server(lasting_processes: Processes, redis_server: StoreServer) -> Iterator[QueueServer]:
    """A server that refuses requests that the page should not send."""
    server = lasting_processes.server(
        redis_server,
        strict="yes",
        webhook_allow="127.0.0.1/32",
        calls="yes",
        call_allow="127.0.0.1/32, *.example",
    )
    yield server
    server.close()


@pytest.fixture
def queue(server: QueueServer) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


class Admin:
    """A tab with the page, and what it must never do: fail, break its policy, ask another host.

    Texts are given in English: the tab looks for them in its own language.
    """

    def __init__(self, browser: Browser, look: Look) -> None:
        self.look = look
        self.complaints: list[str] = []
        self._url = ""
        context = browser.new_context(
            color_scheme="dark" if look.theme == "dark" else "light",
            locale={"en": "en-US", "zh": "zh-CN"}[look.language],
        )
        self.page: Page = context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)
        self.page.set_default_timeout(PATIENCE_MS)

    def begin(self, server: QueueServer) -> None:
        """Reset the tab, with nothing open."""
        self._url = server.url
        self.complaints.clear()
        self.page.set_viewport_size({"width": self.look.width, "height": HEIGHT})

    def end(self) -> None:
        if self.page.url.startswith(self._url):
            self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.page.goto("about:blank")

    def open(self, place: str) -> Page:
        """Go to a place behind #/ and wait until its heading is there."""
        self.go(place)
        self.page.locator("main h1, main .empty").first.wait_for()
        return self.page

    def go(self, place: str = "") -> None:
        self.page.goto(f"{self._url}/admin#/{place}")

    def text(self, english: str) -> str:
        return self.look.text(english)

    def pattern(self, english: str) -> re.Pattern[str]:
        """With {0} for what is not known in advance."""
        return self.look.pattern(english)

    def said(self, english: str) -> Locator:
        """The elements with this text."""
        return self.page.get_by_text(self.pattern(english))

    def button(self, english: str, within: Locator | None = None) -> Locator:
        place = within or self.page
        return place.get_by_role("button", name=self.text(english), exact=True)

    def press(self, english: str, within: Locator | None = None) -> None:
        self.button(english, within).click()

    def list_only(self, state: str) -> None:
        """Show a topic's jobs in this state; its button may have their number."""
        name = re.compile(rf"^{re.escape(self.text(state))}( [\d,]+)?$")
        self.page.locator(".card .choices").get_by_role("button", name=name).click()

    def agree(self, english: str) -> None:
        """Say yes to a question."""
        self.press(english, self.page.locator("dialog"))

    def confirm(
        self, english: str, within: Locator | None = None, *, answer: str | None = None
    ) -> None:
        """Press a button and say yes to its question, with this answer."""
        self.press(english, within)
        if answer is not None:
            self.page.locator("dialog input[name=answer]").fill(answer)
        self.agree(english)

    def field(self, english: str) -> Locator:
        return self.page.get_by_label(self.text(english))

    def link(self, english: str) -> Locator:
        return self.page.get_by_role("link", name=self.text(english), exact=True)

    def _said(self, message: ConsoleMessage) -> None:
        # a status such as 401, or 503 of a store that is busy, is a line on the console, too
        if message.type in {"error", "warning"} and not STATUS.search(message.text):
            self.complaints.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self._url}/", "data:")):
            self.complaints.append(f"asked {request.url}")


@pytest.fixture(scope="package")
def tab(chromium: Browser) -> Callable[[Look], Admin]:
    """The tab of each look: a new one takes longer than most tests."""
    tabs: dict[Look, Admin] = {}

    def tab(look: Look) -> Admin:
        if look not in tabs:
            tabs[look] = Admin(chromium, look)
        return tabs[look]

    return tab


@pytest.fixture(params=in_looks(ALL, [DESK]))
def look(request: pytest.FixtureRequest) -> Look:
    found: Look = request.param
    return found


@pytest.fixture
def visit(tab: Callable[[Look], Admin], look: Look) -> Iterator[Callable[[QueueServer], Admin]]:
    """Shows the page of a server."""
    shown = tab(look)

    def visit(server: QueueServer) -> Admin:
        shown.begin(server)
        return shown

    yield visit
    complaints = [*shown.complaints]
    shown.end()
    assert complaints == []


@pytest.fixture
def admin(visit: Callable[[QueueServer], Admin], server: QueueServer) -> Admin:
    return visit(server)


@contextmanager
def holding(page: Page, verb: str) -> Iterator[Callable[[], Route]]:
    """The page's requests to this endpoint wait; the function returns the next one, when it has come."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(f"**/{verb}", hold)

    def next_one() -> Route:
        for _ in range(PATIENCE_MS // LOOK_MS):
            if held:
                break
            page.wait_for_timeout(LOOK_MS)
        return held.pop(0)

    try:
        yield next_one
    finally:
        page.unroute(f"**/{verb}")


def let_go(page: Page, held: Route) -> None:
    """Wait until the page has had the answer, and time to do something with it."""
    with page.expect_response(held.request.url) as answered:
        held.continue_()
    answered.value.finished()
    page.evaluate("new Promise((done) => setTimeout(done, 50))")  # by the page's own clock


def second_click(page: Page) -> None:
    """That of a double click, where the pointer is."""
    page.mouse.down(click_count=2)
    page.mouse.up(click_count=2)


def bury(queue: Client, topic: str, count: int, message: str = "") -> None:
    queue.push_many([Job(topic=topic) for _ in range(count)])
    left = count
    while left:
        for job in queue.pop_many(topic, count=100, wait=5):
            queue.bury(job, message=message)
            left -= 1


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the focus is on the element with this name, which may be yet to come."""
    patience = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < patience:
        page.keyboard.press("Tab")
        if name in page.evaluate(FOCUSED):
            return
    raise AssertionError(f"Tab does not reach {name}")


def expect_focus(page: Page, name: str) -> None:
    expect(page.locator(":focus")).to_have_text(name)


# the names of the focused element
FOCUSED: Final = """(() => {
    const at = document.activeElement;
    const labels = [...(at.labels || [])].map((label) => label.textContent.trim());
    return [at.getAttribute("aria-label"), at.textContent.trim(), at.name, ...labels];
})()"""
