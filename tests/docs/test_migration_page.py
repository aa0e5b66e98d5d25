"""docs/migration.md: the import prints what is shown, and the page says what the code does."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

import redis

from delayqueue.cli.local import IMPORTED
from delayqueue.store.original import names, pulse, source
from tests.takeover.old import packed

from .markdown import Example, read
from .test_cli_page import run_in

if TYPE_CHECKING:
    from pathlib import Path

    from tests.processes import StoreServer

PAGE: Final = read("docs/migration.md")
COMMAND: Final = re.compile(r"^ *\$ (delay-queue import .*)\n((?: {4}[^`\s].*\n)+)", re.MULTILINE)
OLD_URL: Final = "redis://127.0.0.1:6379/1"


def fill(old: redis.Redis) -> None:
    """Two delayed jobs, two ready ones, and an entry of one that was finished."""
    now_s = int(time.time())
    for job_id, due_s in {
        "a": now_s + 60,
        "b": now_s + 3600,
        "c": now_s - 1,
        "d": now_s - 2,
    }.items():
        old.set(job_id, packed("t", job_id, due_s, 60, "body"))
        if due_s > now_s:
            old.zadd("dq_bucket_1", {job_id: due_s})
        else:
            old.rpush("dq_queue_t", job_id)
    old.zadd("dq_bucket_2", {"finished": now_s + 60})


def test_the_import_prints_what_is_shown(redis_server: StoreServer, tmp_path: Path) -> None:
    (example,) = (Example(*parts) for parts in COMMAND.findall(PAGE))
    number, new = redis_server.new_database(), redis_server.new_database()
    with redis.Redis(port=redis_server.port, db=number) as old:
        fill(old)
    conf = f"redis.host = {redis_server.address}\nredis.db = {new}\nbucket_size = 3\n"
    (tmp_path / "delay-queue.conf").write_text(conf, encoding="utf-8")
    command = example.command.replace(OLD_URL, f"redis://{redis_server.address}/{number}")
    printed = run_in(tmp_path, command).splitlines()
    shown = [
        re.escape(line.strip()).replace("<time>", r"\d+\.\d")
        for line in example.answer.splitlines()
    ]
    assert all(re.fullmatch(*pair) for pair in zip(shown, printed[1:], strict=True)), printed
    assert printed[0].startswith("warning: the store can lose jobs")  # a Redis made for tests


def test_what_the_page_says_of_names_and_times_is_so() -> None:
    for said in (
        f"`{names.ASIDE}`",
        f"After {pulse.DEAD_S:.0f} seconds without that",
        f"waits up to {source.LOCK_MS / 1000:.0f} seconds",
        *(f"`{one.flags[0]}" for one in IMPORTED if one.flags[0].startswith("--")),
    ):
        assert said in PAGE
