"""MySQL and MariaDB, by PyMySQL: the table is polled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pymysql

from delayqueue.relay.database import Database
from delayqueue.relay.mysql_url import PORT, MySQLUrl

if TYPE_CHECKING:
    from delayqueue.relay.signals import StopSignals

# a session that is idle, in a transaction or not, ends after wait_timeout; polls are more frequent
SESSION: Final = (
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION wait_timeout = {lease_s}, innodb_lock_wait_timeout = {lease_s}, time_zone = '+00:00'",
)
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS {table} (
    seq BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id VARCHAR(255),
    topic VARCHAR(255),
    body MEDIUMTEXT,
    delay DOUBLE,
    due DOUBLE,
    options JSON CHECK (JSON_TYPE(options) = 'OBJECT'),
    cancel BOOLEAN NOT NULL DEFAULT FALSE,
    cancel_tag VARCHAR(255),
    created_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    failed TEXT,
    CHECK ((id IS NULL) = (cancel_tag IS NOT NULL)),
    CHECK (id IS NULL OR topic IS NOT NULL OR cancel),
    CHECK (ascii(left(id, 1)) > 32 AND ascii(right(id, 1)) > 32),
    KEY by_id (id, seq),
    KEY by_failed (failed(1))
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
"""
# what a table of an earlier version lacks
FOUND: Final = "SHOW INDEX FROM {table} WHERE Key_name = 'by_failed'"
LACKS: Final = "ALTER TABLE {table} ADD KEY by_failed (failed(1))"
# Row by row, each by its number: DELETE … WHERE seq IN locks all rows of a small table, and so waits for programs that
# have inserted one and not committed.
DELETE: Final = """
    DELETE o FROM JSON_TABLE('[{seqs}]', '$[*]' COLUMNS (seq BIGINT PATH '$')) k
    STRAIGHT_JOIN {table} o FORCE INDEX (PRIMARY) ON o.seq = k.seq"""


class MySQL(Database):
    """An outbox in MySQL 8.0.16, MariaDB 10.6 or newer."""

    errors = pymysql.MySQLError
    created_ms = "CAST(UNIX_TIMESTAMP(o.created_at) * 1000 AS SIGNED)"
    # NULL is the age of '0000-00-00'
    age_s = "COALESCE(TIMESTAMPDIFF(MICROSECOND, o.created_at, CURRENT_TIMESTAMP(6)), 0) / 1e6"
    by_seq = "FORCE INDEX (PRIMARY)"
    by_id = "FORCE INDEX (by_id)"
    usual_port = str(PORT)
    poll_s = 0.1
    most_chars = 254  # a session without a strict sql_mode cuts what is longer than SCHEMA has it
    schema = SCHEMA
    delete_rows = DELETE

    def __init__(self, dsn: str, table: str, lease_s: int) -> None:
        """Raises ValueError if the URL has what cannot be obeyed."""
        self._url = url = MySQLUrl.read(dsn)
        url.arguments()
        host, port = (url.unix_socket, "") if url.unix_socket else (url.host, str(url.port))
        super().__init__(host, port, url.database, table, lease_s)

    def connect(self) -> Any:
        """A connection whose statements each see what is committed."""
        try:
            arguments = self._url.arguments()
        except ValueError as error:  # a file that is being replaced, for example
            raise pymysql.OperationalError(str(error)) from error
        connection = pymysql.connect(
            **arguments, read_timeout=self.lease_s, write_timeout=self.lease_s
        )
        with connection.cursor() as cursor:
            for statement in SESSION:
                cursor.execute(statement.format(lease_s=self.lease_s))
        return connection

    def create(self) -> None:
        """Make the table; if it is there, add the index that it may lack."""
        super().create()
        if not self._execute(FOUND.format(table=self._table)):
            self._execute(LACKS.format(table=self._table))
        self.commit()

    def wait(self, signals: StopSignals, limit_s: float) -> None:
        """Wait until the next poll, so that the session does not end meanwhile."""
        signals.wait(min(limit_s, self.lease_s / 2))
