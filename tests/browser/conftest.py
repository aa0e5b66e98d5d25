"""A real Chromium, a server, and jobs to look at."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import ViewportSize, sync_playwright

from delayqueue.client import Client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

    from tests.processes import Processes, QueueServer, StoreServer

SIZE: Final[ViewportSize] = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium; playwright only drives it."""
    program = shutil.which("chromium")
    assert program, "chromium is not on PATH: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(processes: Processes, redis_server: StoreServer) -> QueueServer:
    """One that refuses what the page should not send."""
    return processes.server(redis_server, strict="yes")


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
