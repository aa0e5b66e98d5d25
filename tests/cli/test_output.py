"""What a verb has taken is printed or given back, whatever standard output is."""

import asyncio
import dataclasses
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import threading
import time
import urllib.request
from argparse import Namespace
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from delayqueue import Client
from delayqueue.cli import asking, tables
from delayqueue.cli.output import write_error
from delayqueue.cli.program import main
from delayqueue.cli.remote_server import RemoteServer
from delayqueue.client import Job, JobDetails
from tests.processes import (
    LOOPBACK,
    REPOSITORY,
    Processes,
    QueueServer,
    StoreServer,
    environment,
    free_port,
)
from tests.waiting import until, wait_until

BODY: Final = "thank you 😀"
FAR: Final = "9999999999"
PIPE_BYTES: Final = 65_536  # that a pipe of Linux holds


@pytest.fixture(scope="module")
def server(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(redis_server, strict="yes", language="en", calls="yes")


@contextmanager
def job_in(server: QueueServer, topic: str, body: str = BODY) -> Iterator[Client]:
    """A client, and a ready job."""
    with Client(server.url) as queue:
        queue.push(topic, body, id=topic, delay=0)
        yield queue
        queue.purge(topic)


def run(server: QueueServer, shell: str, encoding: str = "utf-8", **more: Any) -> Any:
    """Run a line of shell in which `dq` is the program."""
    program = f'dq() {{ {sys.executable} -m delayqueue "$@"; }}\n{shell}'
    variables = environment({"url": server.url, "language": "en"})
    return subprocess.run(
        ["bash", "-c", program],
        env=variables | {"PYTHONIOENCODING": encoding},
        cwd=REPOSITORY,
        capture_output=True,
        timeout=180,
        check=False,
        **more,
    )


@pytest.mark.parametrize(
    ("encoding", "verb"),
    [
        ("cp936", "get JOB"),
        ("latin-1", "pop JOB"),
        ("ascii", "list JOB"),
        ("cp936", "peek JOB"),
        ("ascii", f"take JOB --end {FAR}"),
    ],
)
def test_what_the_encoding_lacks_is_escaped(server: QueueServer, encoding: str, verb: str) -> None:
    topic = f"{verb.split(maxsplit=1)[0]}-{encoding}"
    with job_in(server, topic):
        ended = run(server, f"dq {verb.replace('JOB', topic)}", encoding)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"thank you \\U0001f600" in ended.stdout


def test_json_stays_json_in_every_encoding(server: QueueServer) -> None:
    with job_in(server, "json"):
        shown = run(server, "dq get json --json").stdout
        ended = run(server, "dq take json --json --end " + FAR, "cp936")
    assert BODY.encode() in shown
    [taken] = json.loads(ended.stdout.decode("ascii"))
    assert taken["body"] == BODY


@pytest.mark.parametrize("output", [">/dev/full", ">/dev/full --json"])
@pytest.mark.parametrize("verb", ["pop full", f"take full --end {FAR}"])
def test_on_a_full_disk_what_was_taken_is_printed_on_standard_error(
    server: QueueServer, verb: str, output: str
) -> None:
    with job_in(server, "full"):
        ended = run(server, f"dq {verb} {output}")
    assert ended.returncode == 1
    complaint, taken = ended.stderr.decode().splitlines()
    assert complaint.startswith("delay-queue: standard output: No space left on device")
    found = json.loads(taken)
    job = found[0] if isinstance(found, list) else found
    assert (job["id"], job["body"]) == ("full", BODY)


@pytest.mark.parametrize("verb", ["pop both", f"take both --end {FAR}"])
@pytest.mark.parametrize("errors", ["2>&1", "2>&-"])
def test_if_nothing_can_be_printed_it_is_given_back(
    server: QueueServer, verb: str, errors: str
) -> None:
    with job_in(server, "both") as queue:
        ended = run(server, f"dq {verb} >/dev/full {errors}")
        job = queue.get("both")
    assert ended.returncode == 1
    assert job is not None
    assert (job.state, job.body) == ("ready", BODY)


def test_a_taken_job_that_is_given_back_has_all_that_it_had(server: QueueServer) -> None:
    with Client(server.url) as queue:
        queue.push(
            "whole",
            BODY,
            id="whole",
            due=time.time() + 3600,
            ttr=77,
            tags=["order:1", "user:7"],
            retry=[1.5, 60],
            expire=90,
            priority=7,
            group="customer-7",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            idempotency_key="payment 1",
        )
        queue.push("whole", id="plain", delay=3600)
        queue.push(
            "whole", id="kept", delay=3600, retain=300, idempotency_key="k", tags=["order:1"]
        )
        queue.push("whole", id="called", delay=3600, call="http://example.com/x")
        names = ["whole", "plain", "kept", "called"]
        before = [queue.get(name, options=True) for name in names]
        ended = run(server, f"dq take whole --end {FAR} >/dev/full 2>&-")
        after = [queue.get(name, options=True) for name in names]
        repeated = queue.push("whole", "again", id="whole", delay=0, idempotency_key="payment 1")
        [whole] = [job for job in queue.take("whole", start=0) if job.id == "whole"]
    assert ended.returncode == 1
    assert [_without_created(job) for job in after] == [_without_created(job) for job in before]
    assert repeated == "whole"
    assert (whole.body, whole.idempotency_key) == (
        BODY,
        "payment 1",
    )  # the repetition changed nothing
    assert whole.traceparent == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_job_pushed_since_it_was_taken_stays_when_that_is_given_back(server: QueueServer) -> None:
    with (
        Client(server.url) as queue,
        RemoteServer(Namespace(url=server.url, token="", config=None)) as remote,
    ):
        for retain in (0, 60):
            queue.push("since", "old", id="since", delay=3600, retain=retain)
            taken = remote.post("/take", {"topic": "since", "start": 0})
            queue.push("since", "new", id="since", delay=3600)
            asking.push_back(remote, taken)
            [job] = queue.take("since", start=0)
            assert job.body == "new"


def _without_created(job: JobDetails | None) -> JobDetails:
    assert job is not None
    return dataclasses.replace(job, created=0)


@pytest.mark.parametrize("verb", ["pop closed", f"take closed --end {FAR}", "cancel x"])
@pytest.mark.parametrize("output", [">&-", ">&- 2>&-"])
def test_with_a_closed_output_nothing_is_taken(server: QueueServer, verb: str, output: str) -> None:
    with job_in(server, "closed") as queue:
        ended = run(server, f"dq {verb} {output}")
        job = queue.get("closed")
    assert ended.returncode == 1
    said = "" if "2>" in output else "delay-queue: standard output: it is closed\n"
    assert ended.stderr.decode() == said
    assert job is not None
    assert job.state == "ready"


@pytest.mark.parametrize(("verb", "status"), [(f"take left --end {FAR}", 1), ("list left", 141)])
def test_a_reader_that_is_gone_loses_nothing(server: QueueServer, verb: str, status: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with job_in(server, "left"):
        ended = run(server, f"dq {verb} --json >&{writer}", pass_fds=[writer])
    os.close(writer)
    assert ended.returncode == status
    if status == 1:
        assert json.loads(ended.stderr.splitlines()[-1])[0]["id"] == "left"
    else:
        assert ended.stderr == b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_printing_loses_nothing(
    server: QueueServer, number: signal.Signals
) -> None:
    """As Ctrl-C with `| less`, which shows the first page."""
    ids = {f"{number.name}-{n}" for n in range(200)}
    with Client(server.url) as queue:
        queue.push_many([Job(topic="signal", body="x" * 1000, id=job_id) for job_id in ids])
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "delayqueue",
            *f"take signal --count 200 --end {FAR} --json".split(),
        ],
        env=environment({"url": server.url, "language": "en"}),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdout
        wait_until(lambda: waiting_bytes(process.stdout) >= PIPE_BYTES)
        process.send_signal(number)
        assert process.stderr
        complaint, taken = process.stderr.read().decode().splitlines()
        process.stdout.close()
    assert process.returncode == 128 + number
    assert complaint == "delay-queue: interrupted; what was taken is here:"
    assert {job["id"] for job in json.loads(taken)} == ids


def waiting_bytes(pipe: Any) -> int:
    """How much nobody has read yet."""
    size = array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, size)
    return size[0]


def test_a_signal_while_the_answer_comes_loses_nothing(
    server: QueueServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: RemoteServer, *args: Any) -> Any:
        answer = post(self, *args)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # as to a program of one thread
        return answer

    post = RemoteServer.post
    monkeypatch.setattr(RemoteServer, "post", interrupted)
    with job_in(server, "coming"):
        status = main(["take", "coming", "--end", FAR, "--url", server.url])
    assert status == 130
    assert json.loads(capfd.readouterr().err.splitlines()[-1])[0]["id"] == "coming"


def test_a_second_signal_loses_nothing(
    server: QueueServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As Ctrl-C again, because nothing reads what was taken."""

    def interrupted(text: str) -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        write_error(text)

    monkeypatch.setattr("delayqueue.cli.request.say", interrupted)
    monkeypatch.setattr("delayqueue.cli.request.write_error", interrupted)
    with job_in(server, "twice"):
        status = main(["take", "twice", "--end", FAR, "--url", server.url])
    assert status == 130
    assert json.loads(capfd.readouterr().err.splitlines()[-1])[0]["id"] == "twice"


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ("--version", ">/dev/full"),
        ("--help", ">&-"),
        ("help pop", ">/dev/full"),
        ("--help-settings", ">/dev/full"),
        ("stats", ">&-"),
        ("topics", ">/dev/full"),
        ("check", ">/dev/full"),
        ("check", ">&-"),
    ],
)
def test_nothing_ends_in_a_traceback(server: QueueServer, arguments: str, output: str) -> None:
    ended = run(server, f"dq {arguments} {output}")
    assert b"Traceback" not in ended.stderr
    assert b"Exception ignored" not in ended.stderr
    if output == ">/dev/full":
        assert ended.returncode == 1
        assert b"standard output: No space left on device" in ended.stderr


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_the_store_is_checked_whatever_is_closed(
    server: QueueServer, redis_server: StoreServer, closed: str
) -> None:
    ended = run(server, f"DELAYQUEUE_REDIS_HOST={redis_server.address} dq check {closed}")
    assert ended.returncode == 0
    where = f"redis.host = {redis_server.address}"
    assert f"ok: settings\nok: store, a new one ({where})\n".encode() in ended.stdout


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_server_runs_without_standard_streams(
    redis_server: StoreServer, workers: int
) -> None:
    address = f"{LOOPBACK}:{free_port()}"
    settings = {"redis.host": redis_server.address, "redis.db": redis_server.new_database()}
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", 'exec "$@" <&- >&- 2>&-', "", sys.executable, "-m", "delayqueue"),
        env=environment(settings | {"bind_address": address, "workers": workers}),
    )

    def has_ended() -> bool:
        return process.returncode is not None

    try:
        await until(lambda: has_ended() or is_healthy(f"http://{address}/healthz"))
        assert not has_ended()
    finally:
        if not has_ended():
            process.terminate()
    assert await process.wait() == 0


def is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=180):
            return True
    except OSError:
        return False


def test_the_call_of_a_job_is_one_line() -> None:
    told: dict[str, Any] = {"url": "https://x/", "method": "PUT", "headers": {}, "timeout": 30}
    told |= {"expect": "", "give_up": False}
    assert tables.cell("call", told) == "PUT https://x/, timeout 30s"
    told |= {"headers": {"X-A": "***", "X-B": "***"}, "expect": "*a\nb*", "give_up": True}
    said = "PUT https://x/, timeout 30s, headers X-A X-B, expect *a\\nb*, give up"
    assert tables.cell("call", told) == said


def test_beside_a_clock_ahead_of_ours_no_worker_has_had_its_job_for_less_than_nothing() -> None:
    job = {"id": "1001", "topic": "order", "since": time.time() + 3600}
    names = {"name": "w", "version": "", "topics": ["order"], "in_hand": 1, "concurrency": 1}
    counts = {"finished": 0, "failed": 0, "seen": job["since"], "gone": False, "until": None}
    assert "1001 of order 0.0s" in tables.workers([names | counts | {"jobs": [job]}])


def test_the_progress_of_a_job_is_one_line() -> None:
    told: dict[str, Any] = {"percent": 40.0, "message": "page 4\nof 10", "at": 1.0}
    assert tables.cell("progress", told) == "40 %, page 4\\nof 10"
    assert tables.cell("progress", told | {"percent": None}) == "page 4\\nof 10"
    assert tables.cell("progress", told | {"message": ""}) == "40 %"
    assert "40 %" in tables.jobs([{"id": "a", "progress": told}, {"id": "b"}])


def test_what_holds_a_job_up_is_one_line() -> None:
    told: dict[str, Any] = {"id": "order\n1", "state": "delayed", "until": 1.0}
    said = f"order\\n1, delayed until {tables.local_time(1)}"
    assert tables.cell("held_by", told) == said
    assert tables.cell("held_by", told | {"state": "ready", "until": None}) == "order\\n1, ready"
    assert said in tables.jobs([{"id": "a", "held_by": told}, {"id": "b"}])
