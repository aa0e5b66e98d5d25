"""docs/migration.md: the import prints what the page shows, and does what it says."""

import re
import time
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Final

import pytest
import redis

from delayqueue.answers.jobs import ReservedJob
from delayqueue.cli.local import IMPORTED
from delayqueue.config.config import Config
from delayqueue.domain.job import MAX_ID_BYTES, MAX_TOPIC_BYTES
from delayqueue.store.original import ASIDE, source
from delayqueue.web import warnings
from delayqueue.web.endpoints.jobs import GetRequest
from delayqueue.web.endpoints.push import PushRequest
from delayqueue.web.endpoints.reservations import EndRequest, PopRequest
from delayqueue.web.express import IDLE_S, READ_S
from delayqueue.web.parse import MOST_MEMBERS
from tests.importer.old import packed
from tests.processes import StoreServer

from .markdown import Example, read, typed_in

PAGE: Final = read("docs/migration.md")
CHINESE_PAGE: Final = read("docs/migration.zh-CN.md")
ORIGINALS: Final = (PushRequest, PopRequest, EndRequest, GetRequest)
ORIGINAL_FIELDS: Final = {"topic", "id", "delay", "ttr", "body"}
COMMAND: Final = re.compile(r"^ *\$ (delay-queue import .*)\n((?: {4}[^`\s].*\n)+)", re.MULTILINE)
OLD_URL: Final = "redis://127.0.0.1:6379/1"


def fill(old: redis.Redis) -> None:
    """Two delayed jobs, two ready ones, and an entry of a finished one."""
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
    _, said = typed_in(command, tmp_path)
    # on a busy machine it takes more than the two seconds after which it tells of its progress
    printed = [line for line in said.splitlines() if not re.match(r"\d+ jobs, ", line)]
    shown = [
        re.escape(line.strip()).replace("<time>", r"\d+\.\d")
        for line in example.answer.splitlines()
    ]
    assert all(re.fullmatch(*pair) for pair in zip(shown, printed[1:], strict=True)), printed
    assert printed[0].startswith("warning: the store can lose jobs")  # a Redis made for tests


def test_what_the_page_says_of_names_and_times_is_so() -> None:
    for said in (
        f"`{ASIDE}`",
        f"after {source.DEAD_S:.0f} seconds,",
        f"waits up to {source.LOCK_MS / 1000:.0f} seconds",
        *(f"`{one.flags[0]}" for one in IMPORTED if one.flags[0].startswith("--")),
    ):
        assert said in PAGE


def differences(page: str) -> list[list[str]]:
    """The rows of the table of visible differences, without its head."""
    (table,) = re.findall(r"^\| \| [^|]* \| [^|]* \|\n\| --- .*\n((?:\|.*\n)+)", page, re.M)
    return [line.strip("| ").split(" | ") for line in table.splitlines()]


@pytest.mark.parametrize("page", [PAGE, CHINESE_PAGE], ids=["en", "zh"])
def test_the_differences_that_a_client_can_see_are_those_of_the_code(page: str) -> None:
    rows = differences(page)
    assert {len(row) for row in rows} == {3}
    here = " ".join(row[2] for row in rows)
    fields = {name for model in ORIGINALS for name in model.model_fields} - ORIGINAL_FIELDS
    for said in (
        *(f"`{name}`" for name in fields),
        f"{MAX_ID_BYTES} ",
        f"{MAX_TOPIC_BYTES} ",
        f"{Config().max_body_bytes} ",
        f"{IDLE_S:.0f} ",
        f"{READ_S:.0f} ",
        warnings.UNKNOWN_FIELDS,
    ):
        assert said in here or said in " ".join(row[0] for row in rows), said
    assert str(MOST_MEMBERS) in " ".join(row[0] for row in rows)
    assert all(f"`{member.name}`" in " ".join(rows[0]) for member in fields_of(ReservedJob))
