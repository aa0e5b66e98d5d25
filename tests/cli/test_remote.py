"""The verbs over HTTP: what is sent, what is printed, how it ends."""

import io
import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest

from delayqueue.cli.remote import REMOTE
from delayqueue.config.loading import load
from tests import certificates
from tests.partner import Answer, Partner
from tests.processes import (
    LOOPBACK,
    Processes,
    QueueServer,
    StoreServer,
    free_port,
)

from .conftest import Ended

Run = Callable[..., Ended]

VERBS: Final = [*chain(*REMOTE.values())]


def test_a_job_goes_through_its_life(run: Run, topic: str) -> None:
    assert run("push", topic, "hello", "--id", topic).ok() == f"id: {topic}"
    job = json.loads(run("pop", topic, "--json").ok())
    assert (job["id"], job["body"], job["attempt"]) == (topic, "hello", 1)
    assert run("finish", topic, "--receipt", job["receipt"]).ok() == "ok"
    assert run("get", topic).failed(1) == "no such job"
    assert run("get", topic, "--timeout", "5s").failed(1) == "no such job"


@pytest.mark.parametrize("after", [False, True], ids=["before the verb", "after the verb"])
def test_a_config_file_leads_to_its_server(
    run: Run, server: QueueServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    """It is given explicitly, so it overrides the variable; --url overrides it."""
    monkeypatch.setenv("DELAYQUEUE_URL", f"http://{LOOPBACK}:1")
    file = tmp_path / "dq.conf"
    file.write_text(f"bind_address = 0.0.0.0:{server.port}\n", encoding="utf-8")
    named = ("-c", str(file))
    command = ("topics", *named) if after else (*named, "topics")
    run(*command).ok()
    assert f"{LOOPBACK}:1" in run(*command, "--url", f"http://{LOOPBACK}:1").failed(3)


def test_a_config_file_that_cannot_be_understood_leads_nowhere(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "dq.conf"
    file.write_text("bind_address = here\n", encoding="utf-8")
    assert f"{file}:1: bind_address = here: must be" in run("-c", str(file), "topics").failed(2)


@pytest.mark.parametrize(
    ("lines", "url"),
    [
        ("", "http://127.0.0.1:9277"),
        ("bind_address = :80", "http://127.0.0.1:80"),
        ("bind_address = [::]:80", "http://[::1]:80"),
        ("bind_address = queue.example:80", "http://queue.example:80"),
        ("bind_address = 10.0.0.7:443\ntls_cert = c.pem", "https://10.0.0.7:443"),
    ],
)
def test_where_the_server_of_a_config_file_is(tmp_path: Path, lines: str, url: str) -> None:
    file = tmp_path / "dq.conf"
    file.write_text(lines, encoding="utf-8")
    assert load(file, {}).own_url == url


ASKS: Final[tuple[tuple[str, str, dict[str, object]], ...]] = (
    (
        (
            "push t hello --id a --delay 2h --ttr 5m --retry 15s,2m --tag a --tag b --retain 1d --expire 1.5h"
            " --if-exists fail --call http://x/ --call-header 'X-Key: abc' --call-timeout 9s --call-give-up"
        ),
        "/push",
        {"topic": "t", "body": "hello", "id": "a", "delay": 7200, "ttr": 300, "tags": ["a", "b"]}
        | {"retry": {"delays": [15, 120]}, "retain": 86400, "expire": 5400, "if_exists": "fail"}
        | {
            "call": {"url": "http://x/", "headers": {"X-Key": "abc"}, "timeout": 9, "give_up": True}
        },
    ),
    (
        (
            "subscribe s t http://x/ --order 10 --timeout 2m --retry wechat --concurrency 3 --secret - --expect ok"
            " --on-failure continue --payload event --method PUT --header 'X-Key: abc' --header 'X-Shop: 7'"
        ),
        "/subscribe",
        {"name": "s", "topic": "t", "url": "http://x/", "order": 10, "timeout": 120}
        | {"retry": {"preset": "wechat"}, "concurrency": 3, "secret": "hush", "expect": "ok"}
        | {"on_failure": "continue", "payload": "event", "method": "PUT"}
        | {"headers": {"X-Key": "abc", "X-Shop": "7"}},
    ),
    (
        "subscribe s --order 30 --if-exists change",
        "/subscribe",
        {"name": "s", "order": 30, "if_exists": "change"},
    ),
    (
        "schedule s t all --cron '0 9 1 * *' --tz Asia/Shanghai --ttr 5m --catch-up all --call http://x/",
        "/schedule",
        {"name": "s", "topic": "t", "body": "all", "cron": "0 9 1 * *", "tz": "Asia/Shanghai"}
        | {"ttr": 300, "catch_up": "all", "call": {"url": "http://x/"}},
    ),
    (
        "schedule s --every 36h --paused --if-exists replace",
        "/schedule",
        {"name": "s", "every": 129600, "paused": True, "if_exists": "replace"},
    ),
    (
        "schedule s --resumed --if-exists change",
        "/schedule",
        {"name": "s", "paused": False, "if_exists": "change"},
    ),
    ("limit t --rate none --max-jobs 5", "/limit", {"topic": "t", "rate": None, "max_jobs": 5}),
)


@pytest.mark.parametrize(("line", "path", "fields"), ASKS)
def test_the_options_of_a_verb_are_the_fields_of_its_request(
    run: Run, line: str, path: str, fields: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hush\n")))
    with Partner(Answer(200, '{"code":0,"message":"ok","data":null}')) as partner:
        run(*shlex.split(line), "--url", partner.url)
    assert [found for found, _ in partner.heads] == [path]
    assert json.loads(partner.received[0]) == fields


@pytest.mark.parametrize("text", ["", "two\nlines\n", " blanks ", "排队 🐘"])
def test_a_body_from_standard_input_arrives_byte_for_byte(
    run: Run, topic: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    run("push", topic, "-", "--id", topic).ok()
    assert json.loads(run("get", topic, "--json").ok())["body"] == text


def test_a_body_that_is_no_text_is_refused(
    run: Run, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    ended = run("push", topic, "-")
    assert ended.status == 2
    assert "standard input: must be UTF-8" in ended.err


def test_a_body_from_a_standard_input_that_cannot_be_read_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # as Python has it if it is closed
    assert "standard input: it is closed" in run("push", "t", "-").err
    with (tmp_path / "file").open("wb", buffering=0) as only_written:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Unreadable(only_written)))
        ended = run("push", "t", "-")
    assert ended.status == 2
    assert "standard input: Bad file descriptor" in ended.err


class Unreadable:
    """A file that was opened for writing, as the standard input that Python makes of it."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file

    def read(self) -> bytes:
        return os.read(self._file.fileno(), 1)


def test_pop_waits_as_long_as_it_is_told(run: Run, topic: str) -> None:
    assert run("pop", topic).failed(1) == "no job is ready"
    run("push", topic, "--delay", "300ms").ok()
    assert run("pop", topic, "--timeout", "10s").status == 0


def test_one_id_of_many_that_is_unknown_is_said_and_is_status_1(run: Run, topic: str) -> None:
    run("push", topic, "--id", topic).ok()
    ended = run("get", topic, "never-pushed")
    assert ended.failed(1) == "no such job"
    assert topic in ended.out
    assert run("get", topic, "never-pushed", "--json").out.endswith(", null]\n")


def test_a_bad_item_of_a_batch_is_status_1_and_the_others_are_done(run: Run, topic: str) -> None:
    run("push", topic, "--id", topic).ok()
    run("pop", topic, "--json").ok()
    ended = run("reschedule", topic, "--delay", "1")
    assert ended.failed(1) == "the job's state does not allow this"
    assert json.loads(run("finish", topic, "x", "--json").ok())[0] == {"id": topic, "code": 0}


def test_the_jobs_of_a_tag_are_moved_and_each_of_many_ids_is_told(run: Run, topic: str) -> None:
    for name in ("a", "b"):
        run("push", topic, "--id", f"{topic}-{name}", "--tag", topic, "--delay", "1h").ok()
    assert run("reschedule", "--tag", topic, "--delay", "2h").ok() == "count: 2"
    assert run("reschedule", "--tag", topic, "--by", "1h", "--priority", "9").ok() == "count: 2"
    due = json.loads(run("get", f"{topic}-a", "--json").ok())["due"]
    moved = json.loads(run("reschedule", f"{topic}-a", "--by=-90m", "--json").ok())
    assert round(moved["due"] - due) == -5400
    assert run("kick", "--tag", topic, "--state", "delayed").ok() == "count: 2"
    ended = run("kick", f"{topic}-a", "never-pushed")
    assert ended.status == 1
    rows = [line.split() for line in ended.out.splitlines()[1:]]
    assert rows == [[f"{topic}-a", "3"], ["never-pushed", "2"]]
    assert run("reschedule", f"{topic}-a", f"{topic}-b", "--delay", "0").status == 0


def test_more_jobs_than_a_page_holds_are_listed(run: Run, topic: str, server: QueueServer) -> None:
    run("push", topic, "--id", topic).ok()
    for _ in range(3):
        run("push", topic, "--delay", "1h").ok()
    assert len(json.loads(run("list", topic, "--limit", "3", "--json").ok())) == 3
    assert len(json.loads(run("list", topic, "--limit", "2000", "--json").ok())) == 4
    assert len(run("peek", topic).ok().splitlines()) == 1 + 4


def test_points_in_time_are_understood(run: Run, topic: str) -> None:
    run("push", topic, "--id", topic, "--due", "+1h").ok()
    local = (datetime.now().astimezone() + timedelta(hours=2)).strftime("%Y-%m-%d %H:%M")
    for end, found in [(local, 1), ("+30m", 0), (str(time.time() + 5000), 1), ("now", 0)]:
        jobs = json.loads(run("list", topic, "--end", end, "--json").ok())
        assert len(jobs) == found, end
    assert json.loads(run("list", topic, "--start=-30m", "--end", "+2h", "--json").ok())


def test_dead_letters_are_shown_by_reason(run: Run, topic: str) -> None:
    run("push", topic, "--id", topic).ok()
    run("bury", topic, "--message", f"HTTP 503 {'of the bank ' * 30}").ok()
    head, row = run("buried", topic).ok().splitlines()
    assert head.split() == ["COUNT", "REASON", "FIRST", "LAST", "TOPICS", "IDS"]
    assert row.startswith("    1  HTTP 503 of the bank")
    assert row.endswith(f"  {topic}")
    assert len(row) < 200


def test_a_forecast_has_a_bar_for_each_step(run: Run, topic: str) -> None:
    run("push", topic, "--delay", "90m").ok()
    head, *steps = run("forecast", topic).ok().splitlines()
    assert head.split() == ["FROM", "JOBS"]
    assert ["#" in step for step in steps] == [False, True] + [False] * 22


def test_what_is_registered_is_listed_by_pages(
    run: Run, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delayqueue.cli.asking.MAX_BATCH", 2)
    for number in range(5):
        run("schedule", f"{topic}-{number}", topic, "--every", "1h").ok()
        run("subscribe", f"{topic}-{number}", topic, "https://example.com/").ok()
    for kind, remove in (("schedules", "unschedule"), ("subscribers", "unsubscribe")):
        names = [f"{topic}-{number}" for number in range(5)]
        for limit, found in (((), names), (("--limit", "3"), names[:3])):
            listed = json.loads(run(kind, topic, *limit, "--json").ok())
            assert [one["name"] for one in listed] == found
        for name in names:
            run(remove, name).ok()
        assert run(kind, topic).ok() == f"no {kind}"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["push", "t", "--delay", "soon"], "--delay: 'soon': must be like 90, 500ms"),
        (["push", "t", "--retry", "15s,soon"], "or one of alipay, wechat"),
        (["push", "t", "--due", "tomorrow"], "--due: 'tomorrow': must be like now, +2h"),
        (["push"], "the following arguments are required: TOPIC"),
        (["push", "t", "--if-exists", "maybe"], "invalid choice: 'maybe'"),
        (["pop", "t", "--count", "x"], "--count: 'x': must be a whole number"),
        (["subscribers", "--limit=-1"], "--limit: '-1': must be a whole number, at least 1"),
        (["schedules", "--limit", "0"], "--limit: '0': must be a whole number, at least 1"),
        (["list", "--state", "ready", "--limit=-1"], "--limit: '-1': must be a whole number"),
        (["peek", "t", "--count", "0"], "--count: '0': must be a whole number, at least 1"),
        (["stats", "--watch", "0"], "--watch: '0': must be more than 0"),
        (["top", "--every", "0ms"], "--every: '0ms': must be more than 0"),
        (
            shlex.split("subscribe s t http://x/ --header 'X-A: 1' --header 'X-A: 2'"),
            "the header X-A is there twice; give it once",
        ),
        (
            shlex.split("push t --call http://x/ --call-header 'X-A: 1' --call-header 'X-A: 2'"),
            "the header X-A is there twice; give it once",
        ),
        (
            ["subscribe", "s", "https://new/", "--if-exists", "change"],
            "https://new/ is in the place of TOPIC; give NAME TOPIC URL",
        ),
        (["--url", "http://queue"], "--url goes with a verb, such as stats"),
        (["--token=abc"], "--token goes with a verb, such as stats"),
        (["--json"], "--json goes with a verb, such as stats"),
        (["stats", "--url", ""], "URL : must be http://HOST:PORT"),
        (["stats", "--url", "ftp://queue"], "URL ftp://queue: must be http://HOST:PORT"),
        (["stats", "--url", "http://queue:port"], "URL http://queue:port: must be"),
        (["stats", "--token", "a\nb"], "the token: must be printable ASCII"),
    ],
)
def test_a_wrong_argument_is_status_2_and_named(run: Run, arguments: list[str], says: str) -> None:
    ended = run(*arguments)
    assert ended.status == 2
    assert says in ended.err
    assert ended.out == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["push", "t", "--ttr", "0"], "ttr 0: must be 1 to 86400 seconds"),
        (["kick"], "id: must not be empty"),
        (["take", "t"], "give one of start, end, after, before"),
        (
            ["cancel", "some-id"],
            "no job has this tag; to cancel a job by its id: delay-queue delete",
        ),
        (["finish", "a", "b", "--receipt", "r"], "receipt: goes with id, not with ids"),
    ],
)
def test_what_the_server_refuses_is_status_1_in_its_words(
    run: Run, arguments: list[str], says: str
) -> None:
    assert says in run(*arguments).failed(1)


def test_where_the_server_is_may_stand_before_the_verb(run: Run) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    assert "Connection refused" in run("--url", nowhere, "stats").failed(3)
    assert "Connection refused" in run("--json", f"--url={nowhere}", "stats").failed(3)
    assert run("--json", "whoami").ok().startswith("{")
    refused = run("--json", "check").err
    assert refused.startswith("usage: delay-queue check ")
    assert "unrecognized arguments: --json" in refused


def test_a_server_that_is_not_there_is_status_3(run: Run) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert run("stats", "--url", url).failed(3) == (
        f"{url}: [Errno 111] Connection refused; start the server, or correct --url"
    )


def test_a_certificate_that_is_not_trusted_is_not_taken_for_a_server_that_is_away(
    run: Run,
    processes: Processes,
    redis_server: StoreServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = certificates.make(tmp_path, "server")
    server = processes.server(redis_server, own.context(), tls_cert=own.cert, tls_key=own.key)
    refused = run("stats", "--url", server.url).failed(3)
    assert "CERTIFICATE_VERIFY_FAILED" in refused
    assert refused.endswith("; renew its certificate, or name its authority in SSL_CERT_FILE")
    monkeypatch.setenv("SSL_CERT_FILE", str(own.cert))
    misnamed = run("stats", "--url", server.url.replace(LOOPBACK, "localhost")).failed(3)
    assert "certificate is not valid for 'localhost'" in misnamed
    assert misnamed.endswith(
        "; ask for the server by a name of its certificate: --url https://NAME:PORT"
    )
    server.close()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (502, "<html>Bad Gateway</html>"),
        (200, '{"hello": 1}'),
        (200, "\udcff"),
        (503, '{"code":6,"message":"the store is unavailable; try again","data":null}'),
    ],
)
def test_an_answer_that_is_none_of_ours_or_says_unavailable_is_status_3(
    run: Run, status: int, body: str
) -> None:
    with Partner(Answer(status, body)) as stranger:
        assert run("stats", "--url", stranger.url).failed(3)


CALLS: Final = [
    *(
        [verb.name, *("a" for one in verb.arguments if not one.flags[0].startswith("-"))]
        for verb in VERBS
        if verb.name != "top"  # it goes on until somebody ends it
    ),
    ["list", "--state", "ready"],
    ["kick", "--all"],
]


@pytest.mark.parametrize(
    "data",
    [
        *("x", 7, {"jobs": {}, "cursor": "on"}, {"count": "x", "results": 7}, {"pushed": None}),
        *([7], [[]], ["x"], [{"ready": 1}], [{"code": 0}], {"topics": 1, "at": {}, "jobs": [7]}),
    ],
    ids=str,
)
def test_data_of_another_shape_is_one_line_at_most(run: Run, data: object) -> None:
    body = json.dumps({"code": 0, "message": "ok", "data": data})
    with Partner(Answer(200, body)) as stranger:
        for call in CALLS:
            ended = run(*call, "--url", stranger.url)
            assert ended.status in {0, 1, 3}, (call, ended)
            assert ended.err.count("\n") <= 1, (call, ended)
        assert "not the answer of a delay-queue server" in run(
            "list", "t", "--url", stranger.url
        ).failed(3)


def test_the_token_is_sent(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = '{"code":7,"message":"who?","data":null}'
    monkeypatch.setenv("DELAYQUEUE_TOKEN", "secret")
    with Partner(Answer(401, answer)) as stranger:
        assert run("stats", "--url", f"{stranger.url}/queue/").failed(1) == "who?"
        run("stats", "--url", stranger.url, "--token", "other")
    (path, first), (_, second) = stranger.heads
    assert path == "/queue/stats"
    assert first["Authorization"] == "Bearer secret"
    assert second["Authorization"] == "Bearer other"


def test_a_variable_with_a_mistake_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELAYQUEUE_TOKEN", "a\nb")
    assert run("stats").failed(2) == "DELAYQUEUE_TOKEN: must be printable ASCII"
    monkeypatch.setenv("DELAYQUEUE_URL", "queue:9277")
    assert run("stats").failed(2).startswith("DELAYQUEUE_URL=queue:9277: must be http://HOST:PORT")


def test_without_a_token_none_is_sent(run: Run) -> None:
    with Partner(Answer(200, '{"code":0,"message":"ok","data":[]}')) as stranger:
        assert run("topics", "--url", stranger.url).ok() == "no topics"
    assert "Authorization" not in stranger.heads[0][1]


def test_columns_stand_under_their_heads_with_chinese_in_them(run: Run, topic: str) -> None:
    run("push", topic, "排队", "--id", f"{topic}-订单").ok()
    run("push", topic, "queue", "--id", f"{topic}-order").ok()
    head, *lines = run("peek", topic).ok().splitlines()
    place = head.index("TOPIC")
    assert [line.encode("gbk")[place:].decode("gbk").startswith(topic) for line in lines] == [
        True
    ] * 2


def test_ctrl_c_ends_a_wait_without_a_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(socket, "create_connection", interrupted)
    assert run("pop", "t", "--timeout", "1h") == (130, "", "")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read=interrupted)))
    assert run("push", "t", "-") == (130, "", "")
