"""The program as a shell sees it: what it prints and how it ends."""

import itertools
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from redis import Redis

from delayqueue.cli import main
from delayqueue.cli.program import VERBS
from delayqueue.config.build import build
from delayqueue.config.config import OPTIONS
from tests.processes import LOOPBACK, Processes, StoreServer, environment, free_port, run_program

Ended = subprocess.CompletedProcess[str]
Run = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the program to its end: arguments, and settings as `{"redis.host": ...}`.

    It listens on an unused port, not on one where a server of this machine may be.
    """
    free: dict[str, object] = {"bind_address": f"{LOOPBACK}:0"}

    def run_it(*arguments: str, settings: dict[str, object] | None = None) -> Ended:
        return run_program(*arguments, settings=free | (settings or {}), directory=tmp_path)

    return run_it


def the_line(ended: Ended) -> str:
    """Its standard error, which must be one line without a log's head."""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("delay-queue: ")
    return line.removeprefix("delay-queue: ")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit status, and what is printed."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.mark.parametrize("flag", ["-v", "--version"])
def test_the_version_is_printed(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, flag) == (0, f"{build()}\n", "")


@pytest.mark.parametrize("asked", [["--help"], ["help"], ["-c", "no such file", "help"]])
def test_the_help_names_every_verb_once_in_its_family(
    asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = said(capsys, *asked)
    assert status == 0
    rows = re.findall(r"^  ([a-z][a-z-]+) {2,}[a-z]", out.partition("exit status")[0], re.M)
    assert sorted(rows) == sorted(VERBS)


def test_the_settings_have_a_help_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "--help-settings")
    assert status == 0
    assert {*OPTIONS} <= {*out.split()}
    assert "protected_mode" not in said(capsys, "--help")[1]


@pytest.mark.parametrize(
    "asked", [["--help"], ["--help-settings"], *(["help", verb] for verb in VERBS)]
)
def test_help_fits_a_terminal_of_80_columns(
    asked: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = said(capsys, *asked)
    assert status == 0
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("pushx t", "there is no verb 'pushx'; did you mean push"),
        ("--url http://q stat", "there is no verb 'stat'; did you mean stats"),
        ("help subscribe-er", "there is no verb 'subscribe-er'; did you mean subscriber"),
        (
            "--port 80",
            "unrecognized arguments: --port; settings are no options: set DELAYQUEUE_BIND_ADDRESS",
        ),
        ("--workers=2 --port 80", "set DELAYQUEUE_WORKERS, or workers in the file"),
        (
            "serve --port 80",
            "unrecognized arguments: --port 80; settings are no options: set DELAYQUEUE_BIND",
        ),
        ("--redis-host h", "set DELAYQUEUE_REDIS_HOST, or redis.host in the file of -c"),
        ("xyzzy", "there is no verb 'xyzzy'; delay-queue help lists them"),
        ("helpx", "did you mean help?"),
        ("push t --dely=3", "unrecognized arguments: --dely=3; did you mean --delay"),
        ("-c dq.conf worker tasks:worker", "argument -c: this verb reads no config file"),
        ("worker tasks:worker -c dq.conf", "argument -c: this verb reads no config file"),
        ("-cdq.conf relay", "argument -c: this verb reads no config file"),
        ("-c dq.conf completion bash", "argument -c: this verb reads no config file"),
        ("worker tasks:worker --health :0", "--health: ':0': must be HOST:PORT or [IPV6]:PORT"),
        ("serve --json", "unrecognized arguments: --json"),
        ("--help-setings", "unrecognized arguments: --help-setings; did you mean --help-settings"),
    ],
)
def test_a_mistyped_word_is_told_what_was_meant(
    typed: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = said(capsys, *typed.split())
    assert (status, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) < 12  # and not all verbs


def test_more_processes_than_there_are_ports_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["worker", "tasks:worker", "--health", ":65535", "--processes", "2"]) == 2
    said = "delay-queue: --health :65535: 2 processes need as many ports, up to 65535\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"redis.db": "x"}, "DELAYQUEUE_REDIS_DB = x: must be a whole number"),
        ({"redis.hots": "h"}, "DELAYQUEUE_REDIS_HOTS: unknown variable; did you mean"),
        (
            {"redis.binary": "/no/such"},
            "DELAYQUEUE_REDIS_BINARY: redis.binary = /no/such: no such program; name a",
        ),
    ],
)
def test_what_keeps_it_from_starting_is_one_line_and_so_says_check(
    run: Run, settings: dict[str, object], says: str
) -> None:
    for verb, status in ((), 2), (("check",), 1):
        ended = run(*verb, settings=settings)
        assert ended.returncode == status
        assert the_line(ended).startswith(says)


def test_a_server_started_in_a_terminal_says_what_it_is_and_where_its_page_is(
    tmp_path: Path,
) -> None:
    settings: dict[str, object] = {"bind_address": f"0.0.0.0:{free_port()}"}
    ours, its_terminal = pty.openpty()
    with (
        subprocess.Popen(
            [sys.executable, "-m", "delayqueue"],
            cwd=tmp_path,
            env=environment(settings) | {"XDG_STATE_HOME": str(tmp_path)},
            stderr=its_terminal,
        ) as server,
        os.fdopen(ours, encoding="utf-8") as terminal,
    ):
        os.close(its_terminal)
        said = list(itertools.takewhile(lambda line: "INFO" not in line, terminal))
        server.terminate()
        with suppress(OSError):  # the other end of a terminal is gone
            list(terminal)
    port = str(settings["bind_address"]).partition(":")[2]
    assert said[0].endswith(f"Its jobs are in {tmp_path}/delay-queue.\n")
    assert f"open http://127.0.0.1:{port}/admin\n" in said[1]


def test_check_neither_starts_nor_makes_an_embedded_store(run: Run, tmp_path: Path) -> None:
    ended = run("check", settings={"bind_address": f"{LOOPBACK}:0"})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"ok: settings\nok: store, a new one in {tmp_path}/delay-queue\n"
    assert list(tmp_path.iterdir()) == []


def test_check_says_that_the_disk_of_an_embedded_store_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DELAYQUEUE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("DELAYQUEUE_BIND_ADDRESS", f"{LOOPBACK}:0")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=4096))
    assert main(["check"]) == 1
    said = capsys.readouterr()
    assert f"data_dir = {tmp_path}/data: the disk is full; make room there\n" in said.err
    assert "ok: store" not in said.out


@pytest.mark.parametrize("bucket_size", [1, 2])
def test_check_asks_the_store_of_a_running_server_and_disturbs_neither(
    run: Run, processes: Processes, bucket_size: int
) -> None:
    server = processes.server()
    ended = run(
        "check",
        settings={
            "bind_address": server.address,
            "data_dir": server.home / "data",
            "bucket_size": bucket_size,
        },
    )
    assert server.is_ready()
    server.close()
    if bucket_size == 1:
        assert (ended.returncode, ended.stderr) == (0, "")
    else:
        assert ended.returncode == 1
        assert "the data in this store was made with bucket_size = 1" in the_line(ended)


def test_check_says_all_that_is_wrong_at_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "dq.conf").write_text(
        "colour = red\n"
        "no setting\n"
        "bucket_size = many\n"
        "tls_cert = nowhere.pem\n"
        "auth_tokens_file = no-tokens\n"
        "bind_address = 192.0.2.1:9277\n"
        "[subscriber a]\ntopic = t\nurl = http://10.0.0.1/\n"
        "[subscriber b]\ntopic = t\nurl = http://10.0.0.2/\n"
        "[subscriber c]\norder = first\ntimeout = soon\n"
        "[limit t]\n"
        "[colours]\n",
        encoding="utf-8",
    )
    ended = run("-c", "dq.conf", "check", settings={"redis.db": "x", "bind_address": ""})
    assert (ended.returncode, ended.stdout) == (1, "")
    expected = [
        "dq.conf:2: no setting: must be",
        "dq.conf:1: colour: unknown key",
        "dq.conf:14: order = first: must be",
        "dq.conf:15: timeout = soon: ",
        "dq.conf:16: [limit t]: give one of rate",
        "dq.conf:17: [colours]: unknown section",
        "dq.conf:3: bucket_size = many: must be",
        "DELAYQUEUE_REDIS_DB = x: must be",
        "dq.conf:5: auth_tokens_file = no-tokens: ",
        "dq.conf:4: tls_cert = nowhere.pem",
        "dq.conf:7: [subscriber a]: url = http://10.0.0.1/: 10.0.0.1 is not a public address",
        "dq.conf:10: [subscriber b]: url = http://10.0.0.2/: 10.0.0.2 is not a public address",
        "dq.conf:6: bind_address = 192.0.2.1:9277: ",
    ]
    lines = ended.stderr.splitlines()
    assert [
        (line, beginning)
        for line, beginning in zip(lines, expected, strict=True)
        if not line.startswith(f"delay-queue: {beginning}")
    ] == []


def test_a_start_and_check_say_all_that_is_wrong_without_a_store(run: Run, tmp_path: Path) -> None:
    (tmp_path / "dq.conf").write_text(
        "redis.host = embedded\n"
        "tls_key = key.pem\n"
        "[limit a]\nburied_to = b\n[limit b]\nburied_to = a\n"
        "[subscriber a]\ntopic = t\nurl = http://10.0.0.1/\n"
        "[subscriber b]\ntopic = t\nurl = http://10.0.0.2/\n"
    )
    settings = {"data_dir": str(tmp_path / "data"), "bind_address": f"{LOOPBACK}:0"}
    checked = run("-c", "dq.conf", "check", settings=settings)
    begun = run("-c", "dq.conf", settings=settings)
    assert (checked.returncode, begun.returncode) == (1, 2)
    expected = [
        "delay-queue: dq.conf:2: tls_key and tls_client_ca need tls_cert",
        "delay-queue: dq.conf:7: [subscriber a]: url = http://10.0.0.1/: ",
        "delay-queue: dq.conf:10: [subscriber b]: url = http://10.0.0.2/: ",
        "delay-queue: [limit a]: buried_to",
    ]
    for ended in checked, begun:
        lines = ended.stderr.splitlines()
        assert [line[: len(known)] for line, known in zip(lines, expected, strict=True)] == expected
    assert not (tmp_path / "data").exists()


def test_a_start_and_check_refuse_a_limit_that_a_new_store_would_be_too_large_for(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "dq.conf").write_text(
        "redis.host = embedded\nbucket_size = 2\n[limit t]\nconcurrency = 1\n"
    )
    settings = {"data_dir": str(tmp_path / "data"), "bind_address": f"{LOOPBACK}:0"}
    for verb, status in (("check",), 1), ((), 2):
        ended = run("-c", "dq.conf", *verb, settings=settings)
        assert ended.returncode == status
        said = "delay-queue: [limit t]: concurrency: must be at least 2"
        assert [line for line in ended.stderr.splitlines() if line.startswith(said)]


def test_check_warns_of_addresses_that_are_not_those_of_proxies_alone(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "dq.conf").write_text(
        "redis.host = embedded\nproxy_user_header = X-User\nproxy_allow = 0.0.0.0/0\nproxy_roles = view:*\n"
    )
    settings = {"data_dir": str(tmp_path / "data"), "bind_address": f"{LOOPBACK}:0"}
    ended = run("-c", "dq.conf", "check", settings=settings)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (
        "warning: proxy_allow = 0.0.0.0/0: whoever has one of these 4,294,967,296" in ended.stdout
    )


def test_check_warns_of_a_store_that_can_lose_jobs_and_writes_nothing(
    run: Run, redis_server: StoreServer
) -> None:
    database = redis_server.new_database()
    ended = run("check", settings={"redis.host": redis_server.address, "redis.db": database})
    assert ended.returncode == 0
    assert "warning: the store can lose jobs when it stops" in ended.stdout
    with Redis(host=LOOPBACK, port=redis_server.port, db=database) as redis:
        assert redis.dbsize() == 0


def test_check_fails_with_the_line_that_a_start_would_fail_with(
    run: Run, redis_server: StoreServer
) -> None:
    settings: dict[str, object] = {"redis.host": redis_server.address, "redis.db": 99_999}
    ended = run("check", settings=settings)
    assert (ended.returncode, ended.stdout) == (1, "ok: settings\n")
    assert "DB index is out of range" in the_line(ended)
    assert the_line(ended) == the_line(run(settings=settings))
