"""A real Chromium, a server, and jobs to look at."""

from __future__ import annotations

import secrets
import shutil
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import ViewportSize, expect, sync_playwright

from delayqueue.client import Client, Job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

    from tests.processes import Processes, QueueServer, StoreServer

SIZE: Final[ViewportSize] = {"width": 1280, "height": 900}


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
    """One that refuses what the page should not send."""
    server = lasting_processes.server(redis_server, strict="yes", webhook_allow="127.0.0.1/32")
    yield server
    server.close()


@pytest.fixture
def queue(server: QueueServer) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


class Admin:
    """A tab with the page, and what it must never do: fail, break its policy, ask another host."""

    def __init__(self, context: BrowserContext, server: QueueServer) -> None:
        self.page: Page = context.new_page()
        self._url = server.url
        self.complaints: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)
        self.page.set_default_timeout(10_000)

    def open(self, place: str) -> Page:
        """Go to a place behind #/ and wait until its heading is there."""
        self.page.goto(f"{self._url}/admin#/{place}")
        self.page.locator("main h1, main .empty").first.wait_for()
        return self.page

    def _said(self, message: ConsoleMessage) -> None:
        # a refusal by status, such as 401, is a line on the console, too
        if message.type in {"error", "warning"} and "status of 40" not in message.text:
            self.complaints.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self._url}/", "data:")):
            self.complaints.append(f"asked {request.url}")


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport=SIZE, locale="en-US")
    yield context
    context.close()


@pytest.fixture
def admin(context: BrowserContext, server: QueueServer) -> Iterator[Admin]:
    opened = Admin(context, server)
    yield opened
    assert opened.complaints == []


@pytest.fixture
def topic() -> str:
    """One that no other test uses."""
    return f"topic-{secrets.token_hex(4)}"


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def agree(page: Page, name: str) -> None:
    """Say yes to a question."""
    page.locator("dialog").get_by_role("button", name=name, exact=True).click()


def bury(queue: Client, topic: str, count: int, message: str = "") -> None:
    queue.push_many([Job(topic=topic) for _ in range(count)])
    left = count
    while left:
        for job in queue.pop_many(topic, count=100, wait=5):
            queue.bury(job, message=message)
            left -= 1


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the focus is at what has this name."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if name in page.evaluate(FOCUSED):
            return
    raise AssertionError(f"Tab does not reach {name}")


def expect_focus(page: Page, name: str) -> None:
    expect(page.locator(":focus")).to_have_text(name)


# the names of the element that has the focus
FOCUSED: Final = """(() => {
    const at = document.activeElement;
    const labels = [...(at.labels || [])].map((label) => label.textContent.trim());
    return [at.getAttribute("aria-label"), at.textContent.trim(), at.name, ...labels];
})()"""
