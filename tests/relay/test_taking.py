"""Which rows relays take while others hold theirs: those of one id one by one, in their order."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from delayqueue.relay.database import Database as Taker
from delayqueue.relay.postgres import CHANNEL
from tests.relay.databases import TAKERS, Database
from tests.waiting import until

LEASE_S: Final = 300


class Table:
    """An outbox without a server, and what takes its rows."""

    def __init__(self, database: Database, stack: ExitStack) -> None:
        self.database = database
        self._name = f"taken_{secrets.token_hex(4)}"
        self._stack = stack
        self.taker().create()

    def taker(self) -> Taker:
        """What a relay takes rows with."""
        taker = TAKERS[self.database.kind](self.database.dsn, self._name, LEASE_S)
        self._stack.callback(taker.close)
        return taker

    def insert(self, *ids: str) -> None:
        """Insert rows with these ids, in a transaction for each; the empty one cancels by a tag."""
        for each in ids:
            self.execute(self.insertion(each))

    def insertion(self, row_id: str) -> str:
        """The statement that inserts a row."""
        what = f"(topic, id) VALUES ('t', '{row_id}')" if row_id else "(cancel_tag) VALUES ('tag')"
        return f"INSERT INTO {self._name} {what}"

    def execute(self, sql: str) -> None:
        """In a transaction of its own."""
        self.database.execute(sql)


@pytest.fixture
def table(database: Database) -> Iterator[Table]:
    with ExitStack() as stack:
        yield Table(database, stack)


def taken(taker: Taker) -> list[tuple[int, str | None]]:
    """The numbers and ids of the next batch, which stays locked."""
    return [(row.seq, row.id) for row in taker.take()]


def done(taker: Taker, *seqs: int) -> None:
    """As a relay does when the server has answered."""
    taker.delete(list(seqs))
    taker.commit()


def test_the_rows_behind_one_that_is_held_wait_until_it_is_deleted(table: Table) -> None:
    one, other = table.taker(), table.taker()
    table.insert("a", "a", "b")
    assert taken(one) == [(1, "a"), (3, "b")]
    table.insert("a", "b", "c")
    assert taken(other) == [(6, "c")]
    done(other, 6)
    assert taken(other) == []
    done(one, 1, 3)
    assert taken(other) == [(2, "a"), (5, "b")]


async def test_a_relay_that_dies_leaves_its_rows_before_those_behind_them(table: Table) -> None:
    one, other = table.taker(), table.taker()
    table.insert("a", "a")
    assert taken(one) == [(1, "a")]
    one.delete([1])
    one.close()
    await until(lambda: taken(other) == [(1, "a")])


def test_the_next_rows_of_ids_are_taken_without_a_search(table: Table) -> None:
    taker = table.taker()
    table.insert("a", "a", "b", "b")
    assert taken(taker) == [(1, "a"), (3, "b")]
    table.insert("c")
    done(taker, 1, 3)
    assert taken(taker) == [(2, "a"), (4, "b")]  # by their numbers: a search finds c, too
    done(taker, 2, 4)
    assert taken(taker) == [(5, "c")]


def test_a_search_ends_after_so_many_rows_and_the_next_one_goes_on_there(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows wait, a search must end before the lease does."""
    monkeypatch.setattr("delayqueue.relay.database.MOST_SEARCHED", 2)
    one, other = table.taker(), table.taker()
    table.insert("a", "a", "a", "a", "b", "c", "d")
    assert taken(one) == [(1, "a")]
    assert taken(other) == [(5, "b"), (6, "c")]  # behind rows that wait for one
    done(other, 5, 6)
    assert taken(other) == [(7, "d")]
    done(other, 7)
    assert taken(other) == []
    table.insert("e")
    assert taken(other) == [(8, "e")]
    done(other, 8)
    done(one, 1)
    assert taken(other) == [(2, "a")]  # from the front again


def test_rows_that_stay_hold_up_no_others_and_are_taken_again(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a full topic. Whoever moves rows until none is taken, has tried each."""
    monkeypatch.setattr("delayqueue.relay.database.MOST_ROWS", 2)
    taker = table.taker()
    table.insert("a", "b", "c", "a")
    assert taken(taker) == [(1, "a"), (2, "b")]
    done(taker)
    assert taken(taker) == [(3, "c")]
    done(taker, 3)
    for _ in range(2):
        assert taken(taker) == [(1, "a"), (2, "b")]
        done(taker)
        assert taken(taker) == []
    taker.commit()
    table.insert("d")
    assert taken(taker) == [(1, "a"), (2, "b")]
    done(taker, 1)
    assert taken(taker) == [(4, "a")]


def test_the_oldest_row_that_waits_may_stand_behind_many_that_have_failed(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delayqueue.relay.database.MOST_SEARCHED", 2)
    taker = table.taker()
    table.insert("a", "b", "c", "d")
    for row in taker.take() + taker.take():
        taker.fail(row, "bad")
    taker.commit()
    table.insert("e")
    taker.close()
    assert taken(taker) == [(5, "e")]
    assert taker.oldest_s > 0
    done(taker, 5)
    assert taken(taker) == []
    assert taker.oldest_s == 0


async def test_a_next_row_that_another_relay_took_is_not_taken_again(table: Table) -> None:
    one, other = table.taker(), table.taker()
    table.insert("a", "a", "a")
    assert taken(one) == [(1, "a")]
    done(one, 1)
    assert taken(other) == [(2, "a")]
    assert taken(one) == []
    other.close()
    await until(lambda: taken(one) == [(2, "a")])


def test_a_row_before_the_next_one_that_is_committed_late_comes_first(table: Table) -> None:
    taker = table.taker()
    table.insert("a")
    late = table.database.connect()
    late.cursor().execute(table.insertion("a"))
    table.insert("a")
    assert taken(taker) == [(1, "a")]
    late.commit()
    late.close()
    done(taker, 1)
    assert taken(taker) == [(2, "a")]
    done(taker, 2)
    assert taken(taker) == [(3, "a")]


def test_a_next_row_waits_for_a_tag_that_is_cancelled_before_it(table: Table) -> None:
    taker = table.taker()
    table.insert("a", "", "a")
    rows: list[tuple[int, str | None]] = [(1, "a"), (2, None), (3, "a")]
    for row in rows:
        assert taken(taker) == [row]
        done(taker, row[0])


def test_a_row_that_fails_leaves_the_way_to_those_behind_it(table: Table) -> None:
    taker = table.taker()
    table.insert("a", "a", "a")
    (row,) = taker.take()
    taker.fail(row, "bad")
    taker.commit()
    assert taken(taker) == [(2, "a")]
    done(taker, 2)
    assert taker.failures() == (1, "bad")
    assert taken(taker) == [(3, "a")]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.filterwarnings("ignore:using 'notifies")
def test_a_relay_that_is_never_idle_keeps_no_notify(table: Table) -> None:
    """A gigabyte an hour, at a thousand commits a second."""
    connection = table.taker().connect()
    table.insert("a", "b", "c")
    connection.execute(f"NOTIFY {CHANNEL}")  # comes with the commit, and behind those of the rows
    connection.commit()
    assert list(connection.notifies(timeout=0)) == []
    connection.close()


def test_it_sees_what_is_committed_whatever_the_default_of_the_database_is(table: Table) -> None:
    settings = {
        "mariadb": (
            "SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        ),
        "postgresql": (
            "ALTER ROLE root SET default_transaction_isolation = 'serializable'",
            "ALTER ROLE root RESET default_transaction_isolation",
        ),
    }
    strict, usual = settings[table.database.kind]
    table.execute(strict)
    try:
        taker = table.taker()
        assert taken(taker) == []
        table.insert("a")
        assert taken(taker) == [(1, "a")]
    finally:
        table.execute(usual)
