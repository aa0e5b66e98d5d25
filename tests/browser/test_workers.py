"""Which worker has this job, and is it alive?"""

import json
import socket
from typing import Any, Final

from playwright.sync_api import expect

from delayqueue.client import Client
from tests.browser.conftest import IN_BOTH, Admin
from tests.processes import LOOPBACK, QueueServer

TTR_S: Final = 300
# how many pixels of the table are out of sight
CUT_OFF: Final = "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('main .scroll'))"


def vanish(server: QueueServer, topic: str, worker: dict[str, Any]) -> None:
    """Ask for a job, and close the connection without the answer."""
    content = json.dumps({"topic": topic, "timeout": 20, "worker": worker})
    head = f"POST /pop HTTP/1.1\r\nHost: test\r\nContent-Length: {len(content)}\r\n\r\n"
    with socket.create_connection((LOOPBACK, server.port)) as connection:
        connection.sendall((head + content).encode())


@IN_BOTH
def test_a_job_leads_to_its_worker_which_is_seen_to_be_gone(
    admin: Admin, queue: Client, server: QueueServer, topic: str
) -> None:
    name = f"{topic}@web-3.shop.internal:4711"
    who = {
        "name": name,
        "version": "2.4.0",
        "host": "web-3.shop.internal",
        "pid": 4711,
        "concurrency": 10,
    }
    queue.push(topic, "Hello", id=f"{topic}-1", ttr=TTR_S)
    job = queue.pop(topic, wait=5, worker=who)
    assert job
    admin.open(f"job/{topic}-1").get_by_role("link", name=name).click()
    row = admin.page.locator("main tbody tr", has_text=name)
    expect(row).to_contain_text("1 / 10")
    expect(row).to_contain_text("2.4.0")
    expect(row).not_to_contain_text(admin.pattern("gone, last seen {0}"))
    vanish(server, f"{topic}/none", who)
    expect(row).to_contain_text(admin.pattern("gone, last seen {0}"))
    expect(row).to_contain_text(admin.pattern("its jobs go to other workers after {0}"))
    assert admin.page.evaluate(CUT_OFF) == 0
    row.get_by_role("link", name=f"{topic}-1", exact=True).click()
    expect(admin.page.get_by_role("heading", name=f"{topic}-1")).to_be_visible()
    queue.finish(job)


@IN_BOTH
def test_what_is_typed_leaves_those_with_it_in_their_names(
    admin: Admin, queue: Client, topic: str
) -> None:
    for number in range(3):
        queue.pop(topic, wait=0, worker=f"{topic}/{number}")
    rows = admin.open(f"workers/{topic.replace('/', '%2F')}").locator("main tbody tr")
    expect(rows).to_have_count(3)
    admin.page.locator("main input[type=search]").fill(f"{topic}/1")
    expect(rows).to_have_count(1)
    admin.page.locator("main input[type=search]").fill(f"{topic}/none")
    expect(admin.said("No worker name contains the text of the filter.")).to_be_visible()
