"""The outbox in a database: takes rows, deletes them, notes why one cannot be pushed."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

from delayqueue.client.jobs import new_id
from delayqueue.domain.job import MAX_ID_BYTES
from delayqueue.relay.row import OutboxRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from delayqueue.relay.signals import StopSignals

MOST_ROWS: Final = 1000  # in a batch, as in a push
MOST_BYTES: Final = 4 * 1024 * 1024  # of bodies in a batch; a larger one comes alone
MOST_SEARCHED: Final = 10_000  # rows that one search passes: 20 to 60 ms
FRONT: Final = 1 - 2**63  # before all rows: whoever inserts them may number them, below 0 too

# Of an id its first row (of "*" each); no row behind one that cancels by tag (those have no id). What is first is read
# from what is committed (at READ COMMITTED, in both databases; a subquery locks nothing). SKIP LOCKED passes over rows
# to take, not over those before them: a row that another relay holds hides those behind it until its delete is
# committed.
JOB: Final = """
    o.failed IS NULL AND o.id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM {table} e {db.by_id}
        WHERE e.id = o.id AND e.id <> '*' AND e.seq < o.seq AND e.failed IS NULL
    ) AND NOT EXISTS (
        SELECT 1 FROM {table} e {db.by_id} WHERE e.id IS NULL AND e.seq < o.seq AND e.failed IS NULL
    )"""
TAG: Final = """
    o.failed IS NULL AND o.id IS NULL AND NOT EXISTS (
        SELECT 1 FROM {table} e {db.by_seq} WHERE e.seq < o.seq AND e.failed IS NULL
    )"""
# where a search ends that begins behind a row; none = it was the last one
END: Final = """
    SELECT MAX(o.seq) FROM (
        SELECT o.seq FROM {table} o {db.by_seq} WHERE o.seq > {after} ORDER BY o.seq LIMIT {most}
    ) o"""
LOCK: Final = """
    SELECT o.seq, COALESCE(OCTET_LENGTH(o.body), 0) FROM {table} o {db.by_seq}
    WHERE {which} ORDER BY o.seq LIMIT {most} FOR UPDATE SKIP LOCKED"""
# Asks again whether they are the first: MySQL locks row by row, and of a transaction that commits meanwhile it could
# lock the second row, and not the first. A new statement sees both. The last column is what `next_seq` of the row is.
READ: Final = """
    SELECT o.seq, {db.created_ms}, {db.age_s}, o.id, o.topic, o.body, o.delay, o.due, o.options, o.cancel, o.cancel_tag,
        (SELECT e.seq FROM {table} e {db.by_id} WHERE e.id = o.id AND e.seq > o.seq AND e.failed IS NULL
         ORDER BY e.seq LIMIT 1)
    FROM {table} o {db.by_seq} WHERE o.seq IN ({seqs}) AND {which} ORDER BY o.seq"""
FAILURES: Final = "SELECT COUNT(*), MAX(seq) FROM {table} WHERE failed IS NOT NULL"
REASON: Final = "SELECT failed FROM {table} WHERE seq = %s"
FAIL: Final = "UPDATE {table} SET failed = %s WHERE seq = %s"
SET_ID: Final = "UPDATE {table} SET id = %s WHERE seq = %s"


class Database(ABC):
    """The outbox: `take` begins a transaction, in which the rows are locked, and `commit` ends it.

    `name` tells it from others.

    After `lease_s` the database ends it too, and the session, so that others can take the rows of a relay that hangs.
    Every method can raise one of `errors`; then `close` it, and the next `take` connects again.
    """

    errors: ClassVar[type[Exception]]
    created_ms: ClassVar[str]
    age_s: ClassVar[str]
    # which index to take: a table that fills and empties outruns the statistics by which the database would choose
    by_seq: ClassVar[str] = ""
    by_id: ClassVar[str] = ""
    most_chars: ClassVar[int] = MAX_ID_BYTES  # of an id, topic or tag that is surely whole
    usual_port: ClassVar[str]
    poll_s: ClassVar[float]  # how long to wait for rows, at first
    schema: ClassVar[str]  # statements with {table}, and {name}: the table's, as a part of others
    delete_rows: ClassVar[str] = "DELETE FROM {table} WHERE seq IN ({seqs})"

    def __init__(self, host: str, port: str, database: str, table: str, lease_s: int) -> None:
        """`host`, `port` and `database` say where the table is; "" = not known, or the usual one."""
        place = host if port in {"", self.usual_port} else f"{host}:{port}"
        self.name = "/".join(filter(None, (place, database, table)))
        self._table = table
        self.lease_s = lease_s
        self._connection: Any = None
        self._sql: dict[str, Any] = {"table": table, "db": self}
        self._batches = self._next_batches()
        self._has_moved = False  # whether rows were done or failed since a search began at FRONT
        self.lease_until_s = 0.0  # by time.monotonic()
        self.oldest_s = 0.0  # the age of the first row, when a search last began there; 0 = there was none to take

    @abstractmethod
    def connect(self) -> Any:
        """A connection whose transactions end after `lease_s`, if it is silent or a statement takes as long."""

    @abstractmethod
    def wait(self, signals: StopSignals, limit_s: float) -> None:
        """Wait for rows, for a signal, or for so long."""

    @classmethod
    def statements(cls, table: str) -> list[str]:
        """What makes the table, with all that belongs to it."""
        name = table.replace(".", "_")
        sql = cls.schema.format(table=table, name=name)
        return [each.strip("\n;") for each in sql.split(";\n\n")]

    def create(self) -> None:
        """Make the table, unless it is there."""
        for statement in self.statements(self._table):
            self._execute(statement)
        self.commit()

    def take(self) -> list[OutboxRow]:
        """Lock and return the next rows; none at the end of the table, if no row was done or failed since its front."""
        return next(self._batches)

    def delete(self, seqs: Sequence[int]) -> None:
        """Delete rows by their numbers, once their requests are carried out."""
        if seqs:
            self._has_moved = True
            self._execute(self.delete_rows.format(table=self._table, seqs=_listed(seqs)))

    def fail(self, row: OutboxRow, reason: str) -> None:
        """Note why a row cannot be carried out, so that it is not taken again."""
        self._has_moved = True
        self._execute(FAIL.format(table=self._table), [reason, row.seq])

    def failures(self) -> tuple[int, str]:
        """How many rows have failed, and why the newest of them has."""
        [(count, seq)] = self._execute(FAILURES.format(table=self._table))
        reasons = self._execute(REASON.format(table=self._table), [seq]) if count else ()
        self.commit()
        return count, next((reason for (reason,) in reasons if reason), "")

    def commit(self) -> None:
        """End the transaction, with what was done in it."""
        self._connection.commit()

    def close(self) -> None:
        """Close the connection, without what was done since the last commit; its rows are free."""
        self._batches = self._next_batches()
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(self.errors):
                connection.close()

    def _next_batches(self) -> Iterator[list[OutboxRow]]:
        """Batches without end: what a search of the table finds, then what stood behind that, found by its number.

        A search passes all rows that are not the first of their ids. So rounds follow it for as long as it took, at
        least one: however many rows wait, half of the time goes into moving them, and new ids wait for two passes.
        """
        after = FRONT
        while True:
            began_s = time.monotonic()
            rows, after = self._search(after)
            took_s = time.monotonic() - began_s
            yield rows
            until_s = time.monotonic() + took_s
            while rows := self._take_behind(rows):
                yield rows
                if time.monotonic() > until_s:
                    break

    def _search(self, after: int) -> tuple[list[OutboxRow], int]:
        """Take the first rows of their ids behind this row, and if none is there, from the front on.

        Not from the front if no row was done or failed since: those that are there stay for now, as of a full topic.
        Returns the rows, and behind which one the next search begins.
        """
        starts = (after, FRONT) if self._has_moved else (after,)
        for behind in dict.fromkeys(starts):
            if behind == FRONT:
                self._has_moved = False
            rows: list[OutboxRow] = []
            at = behind
            while not rows and (end := self._end(at)) is not None:
                here = f"o.seq > {at} AND o.seq <= {end}"
                rows = self._take(f"{here} AND {JOB}", MOST_ROWS) or self._take(
                    f"{here} AND {TAG}", 1
                )
                at = end
            if behind == FRONT:
                self.oldest_s = rows[0].age_s if rows else 0.0
            if rows:
                return rows, rows[-1].seq
        return [], FRONT

    def _end(self, after: int) -> int | None:
        """The last row of a search that begins behind this row; None = there are no more rows."""
        sql = END.format(**self._sql, after=after, most=MOST_SEARCHED)
        found: Sequence[tuple[int | None]] = self._execute(sql)
        return found[0][0]

    def _take_behind(self, rows: Iterable[OutboxRow]) -> list[OutboxRow]:
        """Take the rows that follow these, if they are now the first rows of their ids."""
        seqs = _listed(row.next_seq for row in rows if row.next_seq is not None)
        return self._take(f"o.seq IN ({seqs}) AND {JOB}", MOST_ROWS) if seqs else []

    def _take(self, which: str, most: int) -> list[OutboxRow]:
        self.lease_until_s = time.monotonic() + self.lease_s
        which = which.format(**self._sql)
        locked = self._execute(LOCK.format(**self._sql, which=which, most=most))
        seqs = list(_fitting(locked))
        if not seqs:
            return []
        sql = READ.format(**self._sql, which=which, seqs=_listed(seqs))
        rows = [OutboxRow(*values) for values in self._execute(sql)]
        without_id = [row for row in rows if row.wants_id]
        if not without_id:
            return rows
        # set before the rows are pushed: whoever pushes one again then pushes the same job
        for row in without_id:
            self._execute(SET_ID.format(table=self._table), [self._made_id(row.group), row.seq])
        self.commit()
        return self._take(which, most)

    def _made_id(self, group: str | None) -> str:
        """A unique id, in the bucket of the group unless the table cannot hold that: one bucket takes any."""
        made = new_id(group)
        return made if len(made) <= self.most_chars and "\0" not in made else new_id()

    def _execute(self, sql: str, values: Iterable[object] = ()) -> Sequence[Any]:
        if self._connection is None:
            self._connection = self.connect()
        with self._connection.cursor() as cursor:
            cursor.execute(sql, tuple(values) or None)
            return cursor.fetchall() if cursor.description else ()


def _listed(seqs: Iterable[int]) -> str:
    return ", ".join(map(str, seqs))


def _fitting(sizes: Iterable[tuple[int, int]]) -> Iterable[int]:
    """The first rows whose bodies are not too many bytes together; at least one."""
    total = 0
    for seq, size in sizes:
        total += size
        if total > MOST_BYTES and total > size:
            return
        yield seq
