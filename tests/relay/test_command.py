"""`delay-queue relay`: its options, and how it ends."""

import urllib.request
from typing import Final

import pytest

from delayqueue.relay.database import FAILURES
from tests.processes import Processes, StoreServer, free_port, run_program
from tests.relay.conftest import Outbox
from tests.waiting import until

FAR_S: Final = 60.0  # rows are counted every ten seconds


def test_init_leaves_a_table_that_is_there(outbox: Outbox) -> None:
    outbox.insert(id=outbox.topic)
    assert outbox.run("--init").returncode == 0
    assert outbox.rows() == [outbox.topic]


def test_failed_rows_are_counted_by_an_index_that_init_adds_to_older_tables(
    outbox: Outbox,
) -> None:
    drop, statements, used = {
        "mariadb": (
            "ALTER TABLE {} DROP KEY by_failed",
            ["EXPLAIN FORMAT=JSON {}"],
            '"key": "by_failed"',
        ),
        "postgresql": (
            "DROP INDEX {}_failed",
            ["SET enable_seqscan = off", "EXPLAIN {}"],
            f" {outbox.table}_failed",
        ),
    }[outbox.database.kind]
    outbox.database.execute(drop.format(outbox.table))
    assert outbox.run("--init").returncode == 0
    for number in range(20):
        outbox.insert(id=f"{outbox.topic}-{number}", failed=None if number else "why")
    with outbox.database.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement.format(FAILURES.format(table=outbox.table)))
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert used in plan, plan


async def test_it_outlives_the_database_and_waits_for_the_table(outbox: Outbox) -> None:
    outbox.database.execute(f"DROP TABLE {outbox.table}")
    relay = outbox.relay()
    await until(lambda: outbox.table in relay.log_tail().partition("WARNING")[2])
    outbox.run("--init")
    outbox.insert(id=f"{outbox.topic}-1")
    await until(lambda: not outbox.rows())
    outbox.database.kill()
    outbox.database.start()
    outbox.insert(id=f"{outbox.topic}-2")
    await until(lambda: not outbox.rows())
    assert relay.stop() == 0


async def test_its_numbers_can_be_read_by_prometheus(outbox: Outbox) -> None:
    address = f"127.0.0.1:{free_port()}"
    outbox.relay("--metrics", address)
    outbox.insert(id=f"{outbox.topic}-1")
    outbox.insert(id=f"{outbox.topic}-2", cancel=True)
    outbox.insert(id=f"{outbox.topic}-3", options={"ttr": 0})
    await until(lambda: outbox.rows() == [f"{outbox.topic}-3"])

    def numbers() -> str:
        with urllib.request.urlopen(f"http://{address}/metrics") as answer:
            text: str = answer.read().decode()
            return text

    counted = [
        f'delayqueue_relay_rows_total{{result="{result}"}} 1.0'
        for result in ("pushed", "cancelled", "failed")
    ]
    await until(lambda: all(line in numbers() for line in counted))
    await until(lambda: "delayqueue_relay_oldest_seconds 0.0" in numbers())
    await until(lambda: "delayqueue_relay_failed_rows 1.0" in numbers(), within_s=FAR_S)


async def test_the_server_shows_how_many_rows_have_failed(outbox: Outbox) -> None:
    outbox.insert(id=f"{outbox.topic}-1")
    outbox.insert(id=f"{outbox.topic}-2", options={"ttr": 0})
    outbox.insert(id=f"{outbox.topic}-3", options={"ttr": -1})

    def shown() -> list[tuple[int, str]]:
        outboxes = outbox.client.stats().outboxes
        return [(one.failed, one.reason) for one in outboxes if one.name.endswith(outbox.table)]

    assert outbox.once().returncode == 1
    await until(lambda: [failed for failed, _ in shown()] == [2])
    assert shown()[0][1].startswith("ttr -1: ")
    outbox.database.execute(f"UPDATE {outbox.table} SET options = '{{}}', failed = NULL")
    assert outbox.once().returncode == 0
    await until(lambda: shown() == [(0, "")])


def test_rows_wait_for_a_token_that_may_push_them(
    outbox: Outbox, processes: Processes, redis_server: StoreServer
) -> None:
    tokens = f"produce:a-token-that-may-push-it:{outbox.topic},view:a-token-that-only-sees"
    server = processes.server(redis_server, auth_tokens=tokens)
    outbox.insert(id=f"{outbox.topic}-1")
    for token in ("a-token-that-only-sees", "nobody's-token"):
        done = outbox.once(url=server.url, token=token)
        assert (done.returncode, outbox.rows("failed")) == (3, [None]), done.stderr
    outbox.insert(id=f"{outbox.topic}-2", topic="another")
    done = outbox.once(url=server.url, token="a-token-that-may-push-it")
    assert (done.returncode, outbox.rows()) == (1, [f"{outbox.topic}-2"]), done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--dsn, or DELAYQUEUE_RELAY_DSN: must be mysql://"),
        (("--dsn", "oracle://here"), "must be mysql://"),
        (("--dsn", "mysql://here", "--table", "a;b"), "--table a;b: small letters"),
        (("--dsn", "mysql://here", "--url", "here"), "URL here: must be http://"),
        (("--dsn", "mysql://here", "--metrics", ":65536"), "with a port from 1 to 65535"),
        (("--dsn", "mysql://here", "--poll", "0"), "--poll: '0': must be more than 0"),
        (("--dsn", "mysql://here", "--metrics", "here"), "--metrics: 'here': must be HOST:PORT"),
    ],
)
def test_a_wrong_command_line_is_told(options: tuple[str, ...], message: str) -> None:
    done = run_program("relay", *options, settings={})
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_a_wrong_variable_is_named() -> None:
    done = run_program("relay", "--dsn", "mysql://here", settings={"url": "here"})
    assert done.returncode == 2
    assert "DELAYQUEUE_URL=here: must be http://" in done.stderr


def test_a_database_that_is_away_is_told_by_once() -> None:
    done = run_program("relay", "--once", "--dsn", "mysql://root@127.0.0.1:9/a", settings={})
    assert (done.returncode, "127.0.0.1" in done.stderr) == (3, True), done.stderr
