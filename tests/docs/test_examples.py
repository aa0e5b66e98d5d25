"""Every program in examples/, run for real, in each language with the same result."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final, NamedTuple

import pytest

from delayqueue import Client
from tests.partner import Answer, Partner
from tests.processes import REPOSITORY, Processes, QueueServer, StoreServer
from tests.waiting import until

from .markdown import blocks, ended, read, run

WECHAT_FIRST_S: Final = 15
ALIPAY_FIRST_S: Final = 120
HOUR_S: Final = 3600
IN_GBK: Final = "失败".encode("gbk").decode("utf-8", "surrogateescape")
OK: Final = Answer(200, '{"code":0,"message":"ok","data":null}')
CUT_OFF: Final = {"Content-Length": "99"}  # of an answer that is shorter
CODE_OF_ERROR: Final = {
    "python": """from delay_queue import *
try:
    queue("stats")
except QueueError as error:
    print(error.code)""",
    "php": """<?php require 'delay_queue.php';
try {
    queue('stats', []);
} catch (QueueError $error) {
    echo $error->getCode();
}""",
}


class Language(NamedTuple):
    """One language of the examples."""

    name: str
    suffix: str
    interpreter: tuple[str, ...]


LANGUAGES: Final = (
    Language("php", "php", ("php",)),
    Language("python", "py", (sys.executable, "-B")),
)


class Program:
    """One program of the examples."""

    def __init__(self, language: Language, name: str, variables: dict[str, str]) -> None:
        path = REPOSITORY / "examples" / language.name / f"{name}.{language.suffix}"
        self._command = [*language.interpreter, str(path)]
        self._environment = os.environ | variables

    def __call__(self, *arguments: str) -> str:
        """What it prints. It must succeed."""
        return run([*self._command, *arguments], environment=self._environment)

    def ended(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """How it ends."""
        return ended([*self._command, *arguments], environment=self._environment)

    @contextmanager
    def worker(self) -> Iterator[None]:
        """A worker process of it, which runs meanwhile and must not die."""
        command = ["setpriv", "--pdeathsig", "KILL", *self._command, "work"]
        with subprocess.Popen(command, env=self._environment, stdout=subprocess.DEVNULL) as worker:
            try:
                yield
                assert worker.poll() is None
            finally:
                worker.kill()


class Shop:
    """A server, and the language of its users."""

    def __init__(self, language: Language, server: QueueServer) -> None:
        self._language = language
        self._server = server
        self.url = server.url

    async def until(self, job_id: str, state: str) -> None:
        """Wait until a job is in this state, without starting a program for each look."""

        def is_so() -> bool:
            job = queue.get(job_id)
            return job is not None and job.state == state

        with Client(self.url) as queue:
            await until(is_so)

    def program(self, name: str, bank: Partner | None = None) -> Program:
        variables = {"DELAYQUEUE_URL": self._server.url, "BANK": bank.url if bank else ""}
        return Program(self._language, name, variables)


@pytest.fixture(scope="module", params=LANGUAGES, ids=[language.name for language in LANGUAGES])
def shop(request: pytest.FixtureRequest, processes: Processes, redis_server: StoreServer) -> Shop:
    return Shop(request.param, processes.server(redis_server, language="en", strict="yes"))


def is_due_in(shown: str, seconds: float, began_s: float) -> bool:
    """Whether the row of a job says that it is due so long after some moment between `began_s` and now."""
    due_s = datetime.fromisoformat(shown.split()[2]).timestamp()
    return began_s - 1 < due_s - seconds < time.time() + 1


async def test_a_failed_refund_waits_as_wechat_says_or_until_a_person_kicks_it(shop: Shop) -> None:
    began_s = time.time()
    with Partner(Answer(500, "SYSTEM ERROR"), Answer(200, "SUCCESS")) as bank:
        refunds = shop.program("refunds", bank)
        refunds("ask", "1001", "500")
        refunds("ask", "1001", "500")  # once is enough
        with refunds.worker():
            await shop.until("refund-1001", "delayed")
            with Client(shop.url) as queue:  # however slowly the programs start
                queue.reschedule("refund-1001", by=HOUR_S)
            assert is_due_in(refunds("show", "1001"), WECHAT_FIRST_S + HOUR_S, began_s)
            refunds("now", "1001")
            await shop.until("refund-1001", "finished")
    row, *attempts = refunds("show", "1001").splitlines()
    assert row.startswith("refund-1001 finished")
    assert row.endswith(" SUCCESS")
    assert attempts == ["  attempt 1: SYSTEM ERROR"]
    assert [json.loads(body) for body in bank.received] == [
        {"refund": "refund-1001", "cents": 500}
    ] * 2


async def test_a_refund_that_the_bank_refuses_for_good_is_buried(shop: Shop) -> None:
    with Partner(Answer(403, f"NO SUCH ACCOUNT {IN_GBK}")) as bank:
        refunds = shop.program("refunds", bank)
        refunds("ask", "1002", "500")
        with refunds.worker():
            await shop.until("refund-1002", "buried")
    shown = refunds("show", "1002")
    assert shown.startswith("refund-1002 buried")
    assert "  attempt 1: NO SUCH ACCOUNT " in shown
    assert len(bank.received) == 1


async def test_a_refund_waits_while_the_bank_cannot_be_reached(shop: Shop) -> None:
    with Partner(Answer(200, "SUCCESS")) as gone:
        refunds = shop.program("refunds", gone)
    refunds("ask", "1003", "500")
    with refunds.worker():
        await shop.until("refund-1003", "delayed")
    assert gone.received == []


def test_cancelling_an_order_ends_its_refund(shop: Shop) -> None:
    refunds = shop.program("refunds")
    refunds("ask", "1004", "500")
    refunds("cancel", "1004")
    assert refunds("show", "1004").startswith("refund-1004 cancelled ")


def test_a_range_can_be_looked_at_often_and_taken_once(shop: Shop) -> None:
    reminders = shop.program("time_range")
    reminders("add", "early", "-60", "it is past")
    reminders("add", "tea", "60", "make tea")
    reminders("add", "call", "120", "call home")
    reminders("add", "night", "7200", "go to bed")
    soon = "tea: make tea\ncall: call home\n"
    assert reminders("look", "0", "600") == soon
    assert reminders("look", "0", "600") == soon
    reminders("drop", "call")
    assert reminders("take", "-600", "600") == "early: it is past\ntea: make tea\n"
    assert reminders("take", "-600", "600") == ""
    assert reminders("look", "-600", "9000") == "night: go to bed\n"


async def test_a_merchant_is_notified_until_it_says_success(shop: Shop) -> None:
    answers = (
        *(Answer(200, "fail"), Answer(500, "oops"), Answer(200, IN_GBK)),
        *(Answer(200, "succ", CUT_OFF), Answer(200, "success\n")),
    )
    with Partner(*answers) as merchant:
        notify = shop.program("notify")
        notify("push", "T1", merchant.url, "100ms,200ms,200ms,200ms")
        with notify.worker():
            await shop.until("notify-T1", "finished")
    assert " after 5 attempts: success" in notify("show", "T1")
    assert merchant.received == ["trade_no=T1&trade_status=TRADE_SUCCESS"] * 5


async def test_a_merchant_that_fails_is_called_again_as_alipay_does(shop: Shop) -> None:
    began_s = time.time()
    with Partner(Answer(200, "fail")) as merchant:
        notify = shop.program("notify")
        notify("push", "T2", merchant.url)
        with notify.worker():
            await shop.until("notify-T2", "delayed")
    shown = notify("show", "T2")
    assert shown.startswith("notify-T2 delayed ")
    assert "after 1 attempts: fail" in shown
    assert is_due_in(shown, ALIPAY_FIRST_S, began_s)


@pytest.mark.parametrize("language", LANGUAGES, ids=[language.name for language in LANGUAGES])
@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, '{"code":0', CUT_OFF),
        Answer(502, '{"message":"no route"}'),  # a proxy's
        Answer(502, "<html>"),
        Answer(200, "7"),
        Answer(200, '{"code":[],"message":"","data":null}'),
        Answer(200, "[" * 100_000),
    ],
    ids=["cut off", "another's", "not json", "a number", "an odd code", "brackets"],
)
def test_what_is_not_the_queues_answer_is_none(language: Language, answer: Answer) -> None:
    with Partner(answer) as proxy:
        shown = run(
            [
                "bash",
                "-c",
                f"cd {REPOSITORY}/examples/{language.name} && {shlex.join(language.interpreter)}",
            ],
            CODE_OF_ERROR[language.name],
            environment=os.environ | {"DELAYQUEUE_URL": proxy.url},
        )
    assert shown.strip() == "-1"


@pytest.mark.parametrize("language", LANGUAGES, ids=[language.name for language in LANGUAGES])
def test_the_queue_is_not_asked_through_the_proxy_of_the_environment(language: Language) -> None:
    """It is for what is far away, and ends a request before a /pop has waited."""
    with Partner(Answer(502, "<html>")) as proxy, Partner(OK) as queue:
        shown = run(
            [
                "bash",
                "-c",
                f"cd {REPOSITORY}/examples/{language.name} && {shlex.join(language.interpreter)}",
            ],
            CODE_OF_ERROR[language.name],
            environment=os.environ
            | {
                "DELAYQUEUE_URL": queue.url,
                "http_proxy": proxy.url,
                "no_proxy": "",
                "NO_PROXY": "",
            },
        )
    assert shown == ""
    assert proxy.received == []


async def test_a_body_that_is_none_of_ours_ends_no_worker(shop: Shop) -> None:
    bodies = {"odd-1": "no json", "odd-2": "[7]", "odd-3": "null", "odd-4": '{"url":7}'}
    with Partner(Answer(200, "success")) as merchant, Client(shop.url) as queue:
        for name, body in bodies.items():
            queue.push("notify", body, id=f"notify-{name}", retry=["1h"])
        notify = shop.program("notify")
        with notify.worker():
            notify("push", "T5", merchant.url)
            await shop.until("notify-T5", "finished")
            for name in bodies:
                failed = queue.get(f"notify-{name}")
                assert failed is not None
                assert failed.state == "delayed", name
                assert failed.message not in {"", "null"}, name


@pytest.mark.parametrize("name", ["refunds", "notify", "time_range"])
def test_a_wrong_argument_is_refused_with_the_usage(shop: Shop, name: str) -> None:
    for arguments in ("", "ask 1 much", "push 1", "show", "add 1 soon x"):
        refused = shop.program(name).ended(*arguments.split())
        assert refused.returncode != 0, arguments
        assert refused.stderr, arguments


def test_the_commands_of_the_page_work(server: QueueServer) -> None:
    (commands,) = blocks(read("examples/README.md"), "sh")
    environment = os.environ | {"DELAYQUEUE_URL": server.url}
    shown = run(["bash", "-ec", f"cd {REPOSITORY}\n{commands.text}"], environment=environment)
    assert shown == "tea: make tea\n"


def test_the_servers_address_and_token_have_one_name_each() -> None:
    for top in ("examples", "docs"):
        for path in (REPOSITORY / top).rglob("*.*"):
            if path.suffix not in {".png", ".pyc"} and not path.name.startswith("upgrading"):
                assert not re.search(r"\bDELAY_QUEUE(_TOKEN)?\b", path.read_text("utf-8")), path


async def test_what_follows_a_payment_happens_in_order_with_plain_php(server: QueueServer) -> None:
    orders = Program(LANGUAGES[0], "order_paid", {"DELAYQUEUE_URL": server.url})
    orders("paid", "1001")
    orders("paid", "1002")
    assert sorted(orders("work", "2").splitlines()) == [
        "paid-1001: I-1001; sent I-1001",
        "paid-1002: points: no account",
    ]
    with Client(server.url) as queue:
        job = queue.get("paid-1002")
    assert job is not None
    assert (job.state, job.message) == ("delayed", "points: no account")


def test_plain_php_can_run_the_handlers_behind_one_that_failed() -> None:
    code = f"""require '{REPOSITORY}/examples/php/order_paid.php';
    $fails = function (array $job) {{ throw new Exception('disk'); }};
    $last = function (array $job) {{ echo json_encode($job['results']), PHP_EOL; }};
    try {{
        in_order(['one' => $fails, 'two' => $last, 'three' => $fails], ['id' => '1'], false);
    }} catch (RuntimeException $error) {{
        echo $error->getMessage();
    }}"""
    said = run(["php", "-r", code])
    assert said.splitlines() == [
        '{"one":{"succeeded":false,"message":"disk"}}',
        "one: disk; three: disk",
    ]
