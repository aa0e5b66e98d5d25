"""The relay, without a database: rows that are to blame themselves hold up no other."""

import json
from typing import Any
from unittest.mock import Mock

import pytest

from delayqueue.answers.jobs import Outcome
from delayqueue.answers.servers import Access
from delayqueue.client import Client
from delayqueue.client.api_request import TransportError
from delayqueue.errors import Code, Forbidden, Text, Unavailable
from delayqueue.relay.mysql import MySQL
from delayqueue.relay.postgres import Postgres
from delayqueue.relay.relay import Relay
from delayqueue.relay.row import OPTIONS, OutboxRow


def row(options: str = "", **fields: Any) -> OutboxRow:
    usual: dict[str, Any] = {"id": "a", "topic": "t", "body": "", "delay_s": None, "due_s": None}
    usual |= {"cancel": False, "cancel_tag": None} | fields
    return OutboxRow(seq=1, created_ms=1, age_s=0.0, options=options, next_seq=None, **usual)


def relay(given: OutboxRow, client: Client) -> tuple[Relay, Mock]:
    """A relay, and a database that gives it one row, has none that failed, and is looked at each second."""
    database = Mock(lease_until_s=float("inf"), lease_s=30, oldest_s=0.0, most_chars=254)
    database.take.return_value = [given]
    database.name, database.poll_s, database.errors = "shop/outbox", 1.0, OSError
    database.failures.return_value = (0, "")
    return Relay(database, client, 60.0), database


def stopped_at_once() -> Mock:
    """Signals, of which the one to stop comes in the first pause."""
    signals = Mock(stop=False)
    signals.wait.side_effect = lambda _: setattr(signals, "stop", True)
    return signals


@pytest.mark.parametrize(
    "options",
    [
        '{"ttr": 1' + "0" * 400 + "}",
        '{"retain": 1' + "0" * 400 + "}",
        '{"tags": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"' + "x" * 100_000 + '": 1}',
        '{"\\ud800\\u0000": 1}',
    ],
    ids=["a long ttr", "a long time", "deep", "a long name", "a name that no database holds"],
)
def test_a_row_that_no_job_can_be_fails_alone(options: str) -> None:
    one, database = relay(row(options), Client("http://127.0.0.1:1"))
    assert one.move() == 1
    [(_, reason)] = [call.args for call in database.fail.call_args_list]
    assert (0 < len(reason) <= 1024, "\0" in reason) == (True, False)
    assert reason.encode().decode() == reason
    database.commit.assert_called_once_with()


def test_an_option_that_is_null_is_as_one_that_is_omitted() -> None:
    """As in /push: a row with `"if_exists": null` must not replace the job that one without it keeps."""
    nulls = json.dumps(dict.fromkeys(OPTIONS))
    assert row(nulls).job(60.0).request() == row("{}").job(60.0).request()


def test_a_row_with_a_longest_wait_replaces_the_job_that_it_puts_off() -> None:
    asked = [row(options).job(60.0).request() for options in ("{}", '{"max_wait": 9}')]
    assert [each["if_exists"] for each in asked] == ["keep", "replace"]


@pytest.mark.parametrize(("given", "asked"), [(-1, -1), (0, 60), ("2m", 120)])
def test_a_job_is_remembered_as_long_as_the_relay_needs_unless_its_retain_is_wrong(
    given: object, asked: int
) -> None:
    assert row(json.dumps({"retain": given})).job(60).request()["retain"] == asked


def test_a_server_that_does_not_listen_holds_up_no_row(caplog: pytest.LogCaptureFixture) -> None:
    client = Mock(spec=Client)
    client.whoami.side_effect = TransportError("nobody is there")
    one, database = relay(row(), client)
    database.failures.return_value = (3, "no")
    one.tell()
    told = {"name": "shop/outbox", "failed": 3, "reason": "no", "oldest_age": 0.0}
    client.whoami.assert_called_once_with(outbox=told)
    assert (one.failed, caplog.text) == (3, "")


def test_a_relay_reports_on_rows_that_wait_for_a_server_that_is_away() -> None:
    client = Mock(spec=Client)
    client.push_many.side_effect = Unavailable
    one, database = relay(row(), client)
    database.failures.return_value = (3, "no")
    one.run(stopped_at_once())
    client.whoami.assert_called_once()
    assert one.failed == 3


def test_it_looks_again_the_later_the_longer_nothing_comes_or_nothing_can_be_done() -> None:
    client = Mock(spec=Client)
    one, database = relay(row(), client)
    database.poll_s = 0.5
    away, none, some = Unavailable(), list[OutboxRow](), [row()]
    database.take.side_effect = [*[none] * 30, some, none, *[away] * 10, none, away]
    client.push_many.return_value = [Outcome("a", Code.OK, "")]
    signals, paused_s = Mock(stop=False), list[float]()

    def pause(pause_s: float) -> None:
        paused_s.append(pause_s)
        signals.stop = len(paused_s) == 43

    signals.wait.side_effect = pause
    database.wait.side_effect = lambda _, pause_s: pause(pause_s)
    one.run(signals)
    idle, again, failing, last = paused_s[:30], paused_s[30], paused_s[31:41], paused_s[41:]
    assert idle == sorted(idle)
    assert (idle[0], idle[-1], again) == (0.5, 5.0, 0.5)
    assert failing == [*(0.1 * 2**n for n in range(7)), 10.0, 10.0, 10.0]
    assert last == [0.55, 0.1]


def test_rows_that_stay_take_half_of_the_time() -> None:
    client = Mock(spec=Client)
    client.push_many.return_value = [Outcome("a", Code.TOPIC_FULL, "topic full: 1 job")]
    one, database = relay(row(), client)
    database.take.side_effect = [[row()]]
    signals = stopped_at_once()
    one.run(signals)
    signals.wait.assert_called_once()
    database.wait.assert_not_called()


@pytest.mark.parametrize(
    ("kind", "dsn", "name"),
    [
        (MySQL, "mysql://shop:secret@db1:3306/shop", "db1/shop/t"),
        (MySQL, "mysql://shop:secret@db1:3307/shop", "db1:3307/shop/t"),
        (MySQL, "mysql://shop:secret@localhost/shop?unix_socket=/run/b", "/run/b/shop/t"),
        (Postgres, "postgresql://shop:secret@db1:5432/shop", "db1/shop/t"),
        (Postgres, "postgresql://shop:secret@db1:5433/shop", "db1:5433/shop/t"),
        (Postgres, "postgresql://shop:secret@/shop?host=/run/b", "/run/b/shop/t"),
        (Postgres, "postgresql:///shop", "shop/t"),
        (Postgres, "postgresql://", "t"),
    ],
)
def test_an_outbox_is_named_without_what_is_secret(
    kind: type[MySQL | Postgres], dsn: str, name: str
) -> None:
    assert kind(dsn, "t", 30).name == name


@pytest.mark.parametrize(
    "given", [row(), row(id=None, cancel_tag="x")], ids=["a push", "a cancel by tag"]
)
@pytest.mark.parametrize("endpoints", [["/push", "/cancel"], ["/topics"]])
def test_a_row_waits_for_another_token_only_if_this_one_may_push_nothing(
    given: OutboxRow, endpoints: list[str]
) -> None:
    """Others wait behind a row that cancels by tag, so its topic must not keep it there."""
    refusal = Text("此token不能访问topic：t", "this token is not for topic t")
    client = Mock(spec=Client)
    client.push_many.return_value = [Outcome("a", Code.FORBIDDEN, refusal.en)]
    client.cancel.side_effect = Forbidden(refusal)
    client.whoami.return_value = Access(["role"], ["u"], endpoints)
    one, database = relay(given, client)
    if "/push" in endpoints:
        assert one.move() == 1
        database.fail.assert_called_once_with(given, refusal.en)
    else:
        with pytest.raises(Forbidden):
            one.move()
        database.fail.assert_not_called()
