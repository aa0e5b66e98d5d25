"""Moves the rows of an outbox to the server, batch by batch."""

from __future__ import annotations

import logging
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

from delayqueue.answers.jobs import Outcome
from delayqueue.client.api_request import TransportError
from delayqueue.domain.text import clean, error_message
from delayqueue.errors import Code, Forbidden, QueueError, Text, TooMany, Unauthorized, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from delayqueue.client import Client
    from delayqueue.client.pushes import Job
    from delayqueue.relay.database import Database
    from delayqueue.relay.row import OutboxRow
    from delayqueue.relay.signals import StopSignals

logger = logging.getLogger(__name__)

CALLS: Final = 3  # a call lasts at most this part of the lease; none begins that could outlast it
TELL_S: Final = 10.0
FIRST_BACKOFF_S: Final = 0.1
LONGEST_BACKOFF_S: Final = 10.0
LONGEST_POLL: Final = 10  # times the first one, while no rows come

# what says nothing about the rows: they stay
NOT_NOW: Final = (Unavailable, TooMany, Unauthorized)
AGAIN: Final = (Code.UNAVAILABLE, Code.TOPIC_FULL)  # of a row that stays, and holds up no other


class LeaseOver(Exception):
    """The batch took longer than its lease."""

    def __init__(self) -> None:
        super().__init__("the batch took too long")


# the outcome of a row for which the lease had no time
LATER: Final = Outcome("", Code.UNAVAILABLE, "")
# the server, or the way to it, is not there
AWAY: Final = (TransportError, QueueError, LeaseOver)


class Relay:
    """Moves rows from the database to the server. `client` waits a third of the lease for an answer, and never retries.

    The server remembers a job for `remember_s` after its end: until then, its row can be pushed again without effect.
    """

    def __init__(self, database: Database, client: Client, remember_s: float) -> None:
        self._database = database
        self._client = client
        self._remember_s = remember_s
        self.moved: Counter[str] = Counter()  # rows `pushed`, `cancelled` and `failed`
        self.failed = 0  # rows that had failed at the last report
        self.waits = ""  # why a row of the last batch stays; "" = none does
        self._tell_at_s = self._warn_at_s = 0.0  # by time.monotonic()

    def run(self, signals: StopSignals, poll_s: float | None = None) -> None:
        """Move rows as they come until a signal comes, whatever is away meanwhile.

        Looks for rows every `poll_s`, by default as the database wants it, and less often while there are none.
        """
        first_s = poll_s or self._database.poll_s
        pause_s, backoff_s = first_s, FIRST_BACKOFF_S
        while not signals.stop:
            try:
                began_s, before = time.monotonic(), self.moved.total()
                try:
                    rows = self.move()
                except AWAY:
                    self._database.close()  # its rows are free, however long the server takes
                    self._tell_in_time()
                    raise
                self._tell_in_time()
                if not rows:
                    self._database.wait(signals, min(pause_s, TELL_S))
                    pause_s = min(pause_s * 1.1, first_s * LONGEST_POLL)
                elif self.moved.total() > before:
                    pause_s = first_s
                else:  # many may stay, and for long: half of the time goes into trying them
                    signals.wait(time.monotonic() - began_s)
                backoff_s = FIRST_BACKOFF_S
            except (*AWAY, self._database.errors) as error:
                logger.warning("%s; the rows wait", error)
                self._database.close()
                signals.wait(backoff_s)
                backoff_s = min(backoff_s * 2, LONGEST_BACKOFF_S)

    @property
    def oldest_s(self) -> float:
        """The age of the oldest row that waits, as the last search from the first row on saw it; 0 = none waits."""
        return max(self._database.oldest_s, 0)  # a clock that was put back

    def move(self) -> int:
        """Move a batch. Returns how many rows it had, 0 = there are none, except those that stay: `waits` says why.

        Raises one of AWAY or of the database's errors if nothing can be said about its rows; then close the database.
        """
        database = self._database
        rows = database.take()
        outcomes = {row.seq: LATER for row in rows} | self._carry_out(rows)
        done = [row for row in rows if outcomes[row.seq].code == Code.OK]
        failed = {
            row: _storable(outcomes[row.seq].message)
            for row in rows
            if outcomes[row.seq].code not in {Code.OK, *AGAIN}
        }
        database.delete([row.seq for row in done])
        for row, reason in failed.items():
            database.fail(row, reason)
        database.commit()
        self._count(done, failed)
        if LATER in outcomes.values():
            raise LeaseOver
        if rows:
            self.waits = next((one.message for one in outcomes.values() if one.code in AGAIN), "")
            if self.waits and time.monotonic() >= self._warn_at_s:
                self._warn_at_s = time.monotonic() + TELL_S
                logger.warning("%s; the rows wait", self.waits)
        return len(rows)

    def _tell_in_time(self) -> None:
        if time.monotonic() >= self._tell_at_s:
            self.tell()

    def tell(self) -> None:
        """Report on the outbox to the server, if that is reachable. Raises one of the database's errors."""
        self._tell_at_s = time.monotonic() + TELL_S
        self.failed, reason = self._database.failures()
        outbox = {
            "name": self._database.name,
            "failed": self.failed,
            "reason": reason,
            "oldest_age": self.oldest_s,
        }
        try:
            self._client.whoami(outbox=outbox)
        except (TransportError, QueueError) as error:
            logger.debug("the server is not told of %d failed rows: %s", self.failed, error)

    def _carry_out(self, rows: Sequence[OutboxRow]) -> dict[int, Outcome]:
        """Do what the rows ask for. Returns the outcome of each, but for those for which the lease has no time.

        Raises one of AWAY if nothing can be said about the rows.
        """
        jobs: dict[OutboxRow, Job] = {}
        outcomes: dict[int, Outcome] = {}
        for row in rows:
            try:
                row.check_names(self._database.most_chars)
                if not row.is_cancel:
                    jobs[row] = row.job(self._remember_s)
            except Exception as error:  # whatever it is, the row is to blame
                outcomes[row.seq] = _refused(row, error)
        cancels = [row for row in rows if row.is_cancel and row.seq not in outcomes]
        outcomes |= self._each(list(jobs), partial(self._push, jobs))
        outcomes |= self._each([row for row in cancels if row.id is not None], self._delete)
        outcomes |= self._each([row for row in cancels if row.id is None], self._cancel_tags)
        # either their topics are to blame, or the token, with which the relay may do nothing
        are_forbidden = rows and {one.code for one in outcomes.values()} == {Code.FORBIDDEN}
        if are_forbidden and not self._may_push():
            message = next(iter(outcomes.values())).message
            raise Forbidden(Text(message, message))
        return outcomes

    def _may_push(self) -> bool:
        """Whether the token may push: if so, it may cancel, too."""
        return "/push" in self._client.whoami().endpoints

    def _each(
        self, rows: Sequence[OutboxRow], send: Callable[[Sequence[OutboxRow]], Iterable[Outcome]]
    ) -> dict[int, Outcome]:
        """The outcome of each row for which there is time.

        A call that is refused as a whole, or raises, is halved until the row to blame is alone.
        """
        database = self._database
        is_over = time.monotonic() > database.lease_until_s - database.lease_s / CALLS
        if not rows or is_over:
            return {}
        try:
            return dict(zip((row.seq for row in rows), send(rows), strict=True))
        except (*NOT_NOW, TransportError):
            raise
        except Exception as error:  # whatever it is: a relay that dies of a row dies of it again
            if len(rows) == 1:
                return {rows[0].seq: _refused(rows[0], error)}
        half = len(rows) // 2
        return self._each(rows[:half], send) | self._each(rows[half:], send)

    def _push(self, jobs: Mapping[OutboxRow, Job], rows: Sequence[OutboxRow]) -> list[Outcome]:
        return self._client.push_many(jobs[row] for row in rows)

    def _delete(self, rows: Sequence[OutboxRow]) -> list[Outcome]:
        return self._client.delete_many(row.id or "" for row in rows)

    def _cancel_tags(self, rows: Sequence[OutboxRow]) -> list[Outcome]:
        for row in rows:
            self._client.cancel(row.cancel_tag or "", topic=row.topic)
        return [Outcome("", Code.OK, "")] * len(rows)

    def _count(self, done: Sequence[OutboxRow], failed: Mapping[OutboxRow, str]) -> None:
        for row, reason in failed.items():
            logger.warning("row %d (%s) has failed: %s", row.seq, row.id, reason)
        cancelled = sum(row.is_cancel for row in done)
        self.moved.update(pushed=len(done) - cancelled, cancelled=cancelled, failed=len(failed))


def _refused(row: OutboxRow, error: Exception) -> Outcome:
    """The outcome of a row that raised this."""
    match error:
        case QueueError():
            return Outcome(row.id or "", error.code, str(error))
        case ValueError() | TypeError():  # says what is wrong with which field
            return Outcome(row.id or "", Code.INVALID, str(error))
        case _:
            return Outcome(row.id or "", Code.INVALID, error_message(error))


def _storable(reason: str) -> str:
    """A reason that every database and log can hold: it may repeat what is in the row."""
    return clean(reason.replace("\0", "\\0"))
