"""Subscribers are tried, paused and looked at, schedules previewed and run."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from csv import DictReader
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Admin, agree, bury, press

if TYPE_CHECKING:
    from collections.abc import Iterator

    from delayqueue.client import Client


class Shop(BaseHTTPRequestHandler):
    """Says yes to trials only."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        is_trial = "delay-queue-trial" in self.headers
        self.send_response(200 if is_trial else 503)
        self.end_headers()
        self.wfile.write(b"thanks for trying" if is_trial else b"closed")

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def shop() -> Iterator[str]:
    """Its url."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Shop) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_webhook_is_tried_paused_and_resumed_and_its_failures_are_seen(
    admin: Admin, queue: Client, topic: str
) -> None:
    with shop() as url:
        queue.subscribe(topic, topic, url, retry=[3600])
        page = admin.open("subscribers")
        row = page.locator("tbody tr", has_text=topic)
        press(row, "Try")  # type: ignore[arg-type]  # a locator finds buttons, too
        agree(page, "OK")
        expect(page.locator("dialog dl")).to_contain_text("200 thanks for trying")
        expect(page.locator("dialog h2")).to_have_text("It has succeeded")
        agree(page, "OK")
        expect(row).to_contain_text("none")  # a trial does not count
        press(row, "Pause")  # type: ignore[arg-type]
        expect(page.locator("dialog")).to_contain_text(f"All jobs of the topic “{topic}” wait")
        agree(page, "OK")
        expect(row).to_contain_text("paused since")
        job_id = queue.push(topic)
        press(row, "Resume")  # type: ignore[arg-type]
        expect(row).to_contain_text("0 ok, 1 failed")
        expect(row).not_to_contain_text("paused since")
        expect(row).to_contain_text("503 closed")
        row.get_by_role("link", name=job_id).click()
        expect(page.locator("h1")).to_have_text(job_id)
    queue.unsubscribe(topic)


@pytest.mark.parametrize(
    ("place", "column"),
    [("topics", "topic"), ("dead", "topics"), ("subscribers", "name"), ("schedules", "name")],
)
def test_other_lists_are_saved_too(
    admin: Admin, queue: Client, topic: str, place: str, column: str
) -> None:
    bury(queue, topic, 1, message=f"refused by {topic}")
    queue.subscribe(topic, f"{topic}-other", "https://shop.example/paid")
    queue.schedule(topic, topic, every=600)
    page = admin.open(place)
    with page.expect_download() as csv:
        press(page, "CSV")
    with csv.value.path().open(encoding="utf-8-sig", newline="") as file:
        assert sum(topic in row[column] for row in DictReader(file)) == 1
    with page.expect_download() as lines:
        press(page, "JSON")
    saved = [json.loads(line) for line in lines.value.path().read_text("utf-8").splitlines()]
    assert sum(topic in row[column] for row in saved) == 1
    queue.unsubscribe(topic)
    queue.unschedule(topic)


def test_a_schedule_is_previewed_in_its_zone_and_run_now(
    admin: Admin, queue: Client, topic: str
) -> None:
    page = admin.open("schedules")
    for label, text in {
        "Name": topic,
        "Topic": topic,
        "Cron line": "30 9 * * 1-5",
        "Time zone": "Asia/Shanghai",
    }.items():
        page.get_by_label(label).fill(text)
    press(page, "Show next ten times")
    times = page.locator("ol.times li")
    expect(times).to_have_count(10)
    expect(times.first).to_contain_text(re.compile(r"^\d{4}-\d\d-\d\d 09:30:00\+08:00 in "))
    page.get_by_label("Cron line").fill("30 9 31 2 *")
    press(page, "Show next ten times")
    expect(page.get_by_role("alert")).to_contain_text("Bad day-of-month")
    page.get_by_label("Cron line").fill("30 9 * * 1-5")
    press(page, "Add")
    row = page.locator("tbody tr", has_text=topic)
    press(row, "Run now")  # type: ignore[arg-type]
    agree(page, "OK")
    pushed = page.locator("dialog a").inner_text()
    job = queue.pop(topic, wait=5)
    assert job
    assert job.id == pushed
    queue.finish(job)
    agree(page, "OK")
    queue.unschedule(topic)
