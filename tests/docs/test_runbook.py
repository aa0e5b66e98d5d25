"""docs/runbook.md: each alert leads to its heading, and who follows the page sees what it shows."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from delayqueue.client import Client
from scripts.links import anchors
from tests.certificates import make
from tests.processes import REPOSITORY, Processes, QueueServer

from .follow import Follower
from .markdown import some_blocks
from .test_metrics_page import ALERT, RULES

PAGE: Final = "docs/runbook.md"
ITS_URL: Final = re.compile(r"- alert: (\w+)\n(?:.*\n)+? +runbook_url: (\S+)")
CONFIG: Final = "language = en\nbind_address = {server}\nredis.host = {store}\nredis.db = 1\n"


@pytest.fixture
def night(processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QueueServer:
    """A server with a bit of everything that goes wrong, its config file, and a redis-cli for its store."""
    store = processes.redis("--appendonly", "yes")
    server = processes.server(store, language="en", strict="yes", redis__db=1)
    config = CONFIG.format(server=server.address, store=store.address)
    (tmp_path / "delay-queue.conf").write_text(config, encoding="utf-8")
    make(tmp_path, "server")
    shim = tmp_path / "bin" / "redis-cli"
    shim.parent.mkdir()
    shim.write_text(
        f'#!/bin/sh\nexec {shutil.which("redis-cli")} -p {store.port} "$@"\n', encoding="ascii"
    )
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}{os.pathsep}{os.environ['PATH']}")
    with Client(server.url) as queue:
        queue.push("mail", "Hello Ann", id="mail-1")
        queue.push("mail", "Hello Ben", id="mail-2")
        queue.push("refund", "500 cents", id="R1")
        queue.bury(queue.pop("refund") or "none", message="no such account")
        queue.push("order", "1001", id="order-1", ttr=600)
        queue.pop("order")
        queue.push("reminder", "make tea", id="tea", delay=7200)
    return server


def test_who_follows_it_sees_what_it_shows(night: QueueServer, tmp_path: Path) -> None:
    Follower(tmp_path, night).follow(PAGE)


def test_its_other_commands_are_sound() -> None:
    for block in some_blocks(PAGE, "sh"):
        subprocess.run(["bash", "-n"], input=block.text, text=True, check=True, timeout=10)
        assert all(shlex.split(line) for line in block.text.splitlines())


def test_each_alert_leads_to_its_heading() -> None:
    urls = dict(ITS_URL.findall(RULES))
    assert [*urls] == ALERT.findall(RULES)
    sections = anchors(REPOSITORY / PAGE)
    for alert, url in urls.items():
        assert url.endswith(f"/runbook.html#{alert.lower()}")
        assert alert.lower() in sections
