"""python -m tests.browser.picture: makes docs/images/admin.png and its Chinese twin, of a server that a shop uses.

All that they show is real but for the past hours, which are made up.
"""

import math
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from playwright.sync_api import Route, sync_playwright

from delayqueue.client import Client, Job
from tests.processes import REPOSITORY, Processes

IMAGES: Final = REPOSITORY / "docs" / "images"
PICTURES: Final = {"en-US": IMAGES / "admin.png", "zh-CN": IMAGES / "admin.zh-CN.png"}
CHINESE_FONT: Final = "Noto Sans CJK SC"  # of Debian's fonts-noto-cjk
VIEW: Final[dict[str, Any]] = {
    "viewport": {"width": 1280, "height": 800},
    "timezone_id": "Asia/Shanghai",
}
LATE_S: Final = 65  # after a minute without a worker, a topic counts as late
STEPS: Final = 180  # minutes of the past
OUTAGE: Final = 117  # its first minute
BACK: Final = OUTAGE + 3
PIECE: Final = 1000  # jobs of a push
REASONS: Final = {
    "HTTP 503 from the bank for refund 4711": 7,
    "the order is not paid": 4,
    "KeyError: 'account'": 1,
}


def main() -> None:
    """Fill a server, and take the pictures of its overview."""
    if CHINESE_FONT not in subprocess.check_output(["fc-list"], text=True):
        sys.exit("no font for Chinese: apt-get install fonts-noto-cjk")
    with shop() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        pages = {locale: browser.new_page(**VIEW, locale=locale) for locale in PICTURES}
        for page in pages.values():
            page.route("**/history", tell_past)
            page.goto(f"{url}/admin#/")
        for page in pages.values():
            page.locator(".u-over").nth(1).wait_for()
            page.wait_for_timeout(3000)  # until the servers have told who waits
        for locale, page in pages.items():
            page.screenshot(path=PICTURES[locale], full_page=True)
        browser.close()


@contextmanager
def shop() -> Iterator[str]:
    """The url of a server that a shop uses."""
    with TemporaryDirectory() as folder:
        processes = Processes(Path(folder))
        try:
            store = processes.redis("--appendonly", "yes")
            server = processes.server(store, language="en")
            with Client(server.url) as queue:
                fill(queue)
            yield server.url
        finally:
            processes.close()


def fill(queue: Client) -> None:
    """Push what a shop pushes."""
    queue.push_many([Job(topic="shipping") for _ in range(23)])
    time.sleep(LATE_S)
    chance = random.Random(7)  # the same picture each time
    now = time.time()
    delayed = [
        Job(topic="order.close", body={"order": 10_000 + number}, due=now + 60 * minute)
        for minute in range(8, 61)  # the first ones become due only after the picture
        for number in range(round(45 + 160 * math.exp(-(((minute - 20) / 5) ** 2))) + minute % 7)
    ]
    delayed += [Job(topic="reminder", due=now + chance.uniform(3700, 86_400)) for _ in range(2400)]
    for start in range(0, len(delayed), PIECE):
        queue.push_many(delayed[start : start + PIECE])
    queue.push_many([Job(topic="coupon.expire", due=now) for _ in range(14)])
    queue.pause("coupon.expire")
    for reason, count in REASONS.items():
        queue.push_many([Job(topic="refund", tags=["user:7"]) for _ in range(count)])
        for job in queue.pop_many("refund", count=count):
            queue.bury(job, message=reason)
    queue.note("HTTP 503 from the bank for refund #", "the bank is told, JIRA-7")
    queue.push_many([Job(topic="payment.notify", ttr=600) for _ in range(3)])
    for number in range(2):
        worker = {
            "name": f"notify@web-{number}.shop:{4711 + number}",
            "version": "2.4.0",
            "host": f"web-{number}.shop",
            "pid": 4711 + number,
            "concurrency": 4,
        }
        queue.pop_many("payment.notify", count=2 - number, wait=5, worker=worker)


def tell_past(route: Route) -> None:
    """Answer /history with three hours and an outage of the store."""
    now = time.time()
    chance = random.Random(7)  # the same picture each time
    start = (now // 60 - STEPS + 1) * 60
    pushed: list[int | None] = []
    for minute in range(STEPS):
        wave = 5400 + 1600 * math.sin(minute / 24) + chance.uniform(-250, 250)
        pushed.append(0 if OUTAGE <= minute < BACK else round(wave))
    finished = [
        each and round(each * (1.4 if BACK <= minute < BACK + 3 else 0.99))
        for minute, each in enumerate(pushed)
    ]
    failed = [each and each % 60 for each in pushed]
    mark = {
        "at": start + 60 * OUTAGE + 15,
        "kind": "outage",
        "lasted": 187.0,
        "server": "web1:9277 #1",
    }
    unknown: list[None] = [None] * STEPS
    told: dict[str, Any] = {
        "start": start,
        "step": 60,
        "pushed": pushed,
        "delivered": finished,
        "finished": finished,
        "failed": failed,
        "marks": [mark],
    }
    for name in ("lateness_mean", "lateness_worst", "delayed", "ready", "reserved", "buried"):
        told[name] = unknown
    route.fulfill(json={"code": 0, "message": "ok", "data": told})


if __name__ == "__main__":
    main()
