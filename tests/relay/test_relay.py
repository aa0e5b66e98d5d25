"""Rows of an outbox become jobs: once each, when they are committed, one after the other for an id."""

import signal
from typing import Any

import pytest

from tests.relay.conftest import Outbox
from tests.relay.gateway import Gateway
from tests.waiting import until


def test_a_row_is_what_a_push_is(outbox: Outbox) -> None:
    options = {"tags": ["user:7"], "ttr": "2m", "retry": {"max": 2}, "priority": 3, "retain": "1h"}
    options["group"] = "customer-7"
    outbox.insert(id=outbox.topic, body="{}", delay=1800, options=options)
    assert outbox.once().returncode == 0
    job = outbox.client.get(outbox.topic, options=True)
    assert job is not None
    assert (job.topic, job.body, job.tags, job.ttr) == (outbox.topic, "{}", ("user:7",), 120)
    assert (job.priority, job.retain, job.state.value) == (3, 3600, "delayed")
    assert job.group == "customer-7"
    assert outbox.rows() == []


def test_a_delay_counts_from_the_insert_and_a_due_time_is_kept(outbox: Outbox) -> None:
    outbox.insert(id=f"{outbox.topic}-1", delay=1800)
    outbox.insert(id=f"{outbox.topic}-2", due=4_000_000_000.5)
    back = {"mariadb": "created_at - INTERVAL 1000 SECOND"}
    sql = back.get(outbox.database.kind, "created_at - INTERVAL '1000 seconds'")
    outbox.database.execute(f"UPDATE {outbox.table} SET created_at = {sql}")
    outbox.once()
    first, second = outbox.client.get_many([f"{outbox.topic}-1", f"{outbox.topic}-2"])
    assert first is not None
    assert second is not None
    assert first.due - first.created == pytest.approx(800, abs=60)
    assert second.due == 4_000_000_000.5


def test_what_is_rolled_back_is_never_pushed_and_what_is_not_committed_waits(
    outbox: Outbox,
) -> None:
    connection = outbox.database.connect()
    outbox.insert(connection=connection, id=f"{outbox.topic}-1")
    connection.rollback()
    outbox.insert(connection=connection, id=f"{outbox.topic}-2")
    outbox.insert(id=f"{outbox.topic}-3")
    assert outbox.once().returncode == 0  # it waits for nobody
    assert outbox.rows() == []
    assert outbox.client.get_many([f"{outbox.topic}-{n}" for n in (1, 2)]) == [None, None]
    assert outbox.state(f"{outbox.topic}-3") == "ready"
    connection.commit()
    connection.close()
    outbox.once()
    assert outbox.state(f"{outbox.topic}-2") == "ready"
    assert outbox.state(f"{outbox.topic}-1") is None


def test_rows_of_one_id_are_carried_out_in_their_order(outbox: Outbox) -> None:
    for row in ({"body": "1"}, {"body": "2"}, {"cancel": True}, {"body": "3"}, {"body": "4"}):
        outbox.insert(id=outbox.topic, **row)
    outbox.once()
    assert outbox.bodies() == ["3"]  # the first one is kept, as long as it lives
    outbox.insert(id=outbox.topic, body="5", options={"if_exists": "replace"})
    outbox.once()
    assert outbox.bodies() == ["5"]


def test_rows_of_a_full_topic_hold_up_no_other_topic(outbox: Outbox) -> None:
    full = f"{outbox.topic}-full"
    outbox.client.limit(full, max_jobs=1)
    connection = outbox.database.connect()
    for number in range(1001):  # more than a batch
        outbox.insert(connection=connection, topic=full, id=f"{full}-{number}")
    outbox.insert(connection=connection, id=outbox.topic)
    outbox.insert(connection=connection, id=f"{full}-0", cancel=True)
    outbox.insert(connection=connection, id=outbox.topic, cancel=True)
    connection.commit()
    connection.close()
    done = outbox.once()
    assert (done.returncode, "topic full: 1 job; the rows wait" in done.stderr) == (3, True)
    assert outbox.state(outbox.topic) == "cancelled"
    assert outbox.state(f"{full}-0") == "cancelled"
    assert {*outbox.rows("topic, failed")} == {(full, None)}
    assert len(outbox.rows()) == 999


def test_a_tag_is_cancelled_between_what_came_before_and_after_it(outbox: Outbox) -> None:
    tags = {"tags": [outbox.topic]}
    outbox.insert(id=f"{outbox.topic}-1", options=tags)
    outbox.insert(id=f"{outbox.topic}-2")
    outbox.insert(cancel_tag=outbox.topic)
    outbox.insert(id=f"{outbox.topic}-3", options=tags)
    assert "3 pushed, 1 cancelled" in outbox.once().stderr
    assert [outbox.state(f"{outbox.topic}-{n}") for n in (1, 2, 3)] == [
        "cancelled",
        "ready",
        "ready",
    ]


def test_a_bad_row_gets_its_reason_and_the_others_go_on(outbox: Outbox) -> None:
    outbox.insert(id=f"{outbox.topic}-1")
    bad: dict[str, tuple[dict[str, Any], str]] = {
        "both": ({"delay": 60, "due": 4e9}, "delay and due exclude each other"),
        "unknown": ({"options": {"dely": 3}}, "no field dely"),
        "column": ({"options": {"delay": 3}}, "no field delay"),
        "length": ({"options": {"ttr": "soon"}}, "'soon'"),
        "short": ({"options": {"ttr": 0}}, "ttr 0"),
        "comma": ({"topic": "a,b"}, "no comma"),
        "large": ({"body": "x" * (1024 * 1024 + 1)}, "1048577 bytes, at most 1048576"),
    }
    for name, (row, _) in bad.items():
        outbox.insert(id=f"{outbox.topic}-{name}", **row)
    outbox.insert(id=f"{outbox.topic}-2", delay=0, due=4e9)
    outbox.insert(id=f"{outbox.topic}-unknown")
    done = outbox.once()
    assert (done.returncode, "3 pushed, 7 failed" in done.stderr) == (1, True), done.stderr
    assert [outbox.state(f"{outbox.topic}-{n}") for n in (1, 2)] == ["ready", "delayed"]
    reasons = dict(outbox.rows("id, failed"))
    assert [
        name for name, (_, why) in bad.items() if why not in reasons[f"{outbox.topic}-{name}"]
    ] == []
    outbox.database.execute(f"UPDATE {outbox.table} SET failed = NULL, options = NULL, body = ''")
    assert outbox.once().returncode == 1  # the topic still has a comma, and one two due times
    assert outbox.rows() == [f"{outbox.topic}-{name}" for name in ("both", "comma")]


def test_what_no_row_can_be_is_refused_by_the_database(outbox: Outbox) -> None:
    bad: tuple[dict[str, Any], ...] = (
        {"id": "a", "topic": None},
        {"topic": "t"},
        {"id": "a", "cancel_tag": "x"},
        {"id": "a", "options": "[]"},
        {"id": "a", "options": "{"},
        # the server would take it for another id, or for none
        *({"id": job_id} for job_id in ("", " ", "a1 ", " a1", "a1\t", "\na1")),
        {"id": " a1", "cancel": True},
    )
    for row in bad:
        with pytest.raises(Exception, match=r"(?i)constraint|json"):
            outbox.insert(**row)
    outbox.insert(id="a 1")
    outbox.insert(id="*")


def test_bodies_that_are_large_together_go_in_several_calls(outbox: Outbox) -> None:
    for number in range(12):
        outbox.insert(id=f"{outbox.topic}-{number}", body="é" * 500_000)
    assert outbox.once().returncode == 0
    (topic,) = outbox.client.topics(outbox.topic)
    assert topic.ready == 12


async def test_a_relay_killed_before_the_delete_does_not_push_again_what_has_ended(
    outbox: Outbox, gateway: Gateway
) -> None:
    relay = outbox.relay(url=gateway.url)
    gateway.hold()
    connection = outbox.database.connect()
    for number in range(3):
        outbox.insert(connection=connection, id=f"{outbox.topic}-{number}")
    connection.commit()
    connection.close()
    await until(gateway.held.is_set)
    outbox.client.finish(f"{outbox.topic}-0")
    outbox.client.delete(f"{outbox.topic}-1")
    relay.kill()
    assert outbox.rows()
    await until(lambda: outbox.once().returncode == 0 and not outbox.rows())
    outbox.once()
    states = [outbox.state(f"{outbox.topic}-{number}") for number in range(3)]
    assert states == ["finished", "cancelled", "ready"]


async def test_a_relay_that_hangs_loses_its_rows_and_does_no_harm_when_it_goes_on(
    outbox: Outbox, gateway: Gateway
) -> None:
    frozen = outbox.relay("--lease", "3", url=gateway.url)
    gateway.hold()
    outbox.insert(id=outbox.topic, body="1")
    await until(gateway.held.is_set)
    frozen.freeze()
    outbox.relay("--lease", "3")
    await until(lambda: not outbox.rows())
    outbox.client.finish(outbox.topic)
    frozen.thaw()
    await until(lambda: "the rows wait" in frozen.log_tail())
    outbox.insert(id=f"{outbox.topic}-2")
    await until(lambda: not outbox.rows())
    assert outbox.state(outbox.topic) == "finished"
    assert frozen.stop() == 0


async def test_two_relays_share_the_rows_and_keep_the_order_of_an_id(outbox: Outbox) -> None:
    connection = outbox.database.connect()
    for number in range(1500):
        outbox.insert(connection=connection, id=f"{outbox.topic}-{number}", body="1")
    for number in range(0, 1500, 10):
        outbox.insert(connection=connection, id=f"{outbox.topic}-{number}", cancel=True)
        outbox.insert(connection=connection, id=f"{outbox.topic}-{number}", body="2")
    relays = [outbox.relay() for _ in range(2)]
    connection.commit()
    connection.close()
    await until(lambda: not outbox.rows())
    for relay in relays:
        assert relay.stop() == 0
    ids = [f"{outbox.topic}-{number}" for number in range(1000)]
    bodies = [job and job.body for job in outbox.client.get_many(ids)]
    assert bodies == ["1" if number % 10 else "2" for number in range(1000)]


async def test_rows_wait_while_the_server_is_away(outbox: Outbox, gateway: Gateway) -> None:
    outbox.insert(id=outbox.topic)
    assert outbox.once(url="http://127.0.0.1:9").returncode == 3
    relay = outbox.relay("--lease", "3", url="http://127.0.0.1:9")
    await until(lambda: "refused" in relay.log_tail())
    assert outbox.rows("failed") == [None]
    assert relay.stop() == 0
    assert outbox.once().returncode == 0
    assert outbox.state(outbox.topic) == "ready"


async def test_sigterm_ends_it_after_the_batch(outbox: Outbox, gateway: Gateway) -> None:
    relay = outbox.relay(url=gateway.url)
    gateway.hold()
    outbox.insert(id=outbox.topic)
    await until(gateway.held.is_set)
    relay.send(signal.SIGTERM)
    gateway.release()
    assert relay.wait() == 0
    assert outbox.rows() == []
    assert "1 pushed" in relay.log_tail()


async def test_postgresql_wakes_it(outbox: Outbox) -> None:
    if outbox.database.kind != "postgresql":
        pytest.skip("only PostgreSQL can")
    relay = outbox.relay("--poll", "1h")
    for number in range(5):
        outbox.insert(id=f"{outbox.topic}-{number}")
        await until(lambda: not outbox.rows())
    assert relay.stop() == 0
