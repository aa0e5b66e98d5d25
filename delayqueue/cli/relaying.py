"""The verb `relay`: moves the rows of an outbox to the server."""

import logging
import os
import re
from argparse import Namespace
from contextlib import closing
from typing import Final

from delayqueue import log
from delayqueue.cli.subcommand import DONE, REFUSED, UNREACHABLE, USAGE, complain, say
from delayqueue.client import Client
from delayqueue.config.startup import StartupError
from delayqueue.config.values import Address
from delayqueue.relay.database import Database
from delayqueue.relay.relay import AWAY, CALLS, Relay
from delayqueue.relay.signals import StopSignals

logger = logging.getLogger(__name__)

EVERY_INTERFACE: Final = "0.0.0.0"  # noqa: S104  # if no HOST is given
DSN_VARIABLE: Final = "DELAYQUEUE_RELAY_DSN"
TABLE: Final = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?")


def relay(asked: Namespace) -> int:
    """Run the relay until it is told to stop, or with `once` until no row is left. Returns the exit status."""
    log.set_up(asked.log_level, "text")
    try:
        with closing(_database(asked)) as database, _client(asked) as client:
            try:
                return _run(asked, database, client)
            except (*AWAY, database.errors) as error:
                return complain([str(error)], UNREACHABLE)
    except StartupError as error:
        return complain([str(error)], USAGE)


def _database(asked: Namespace) -> Database:
    """The database. Raises StartupError if the command line names none."""
    if not TABLE.fullmatch(asked.table):
        raise StartupError(f"--table {asked.table}: small letters, digits and _ only")
    dsn = asked.dsn or os.environ.get(DSN_VARIABLE, "")
    try:
        match dsn.partition(":")[0].lower():
            case "postgresql" | "postgres":
                from delayqueue.relay.postgres import Postgres  # noqa: PLC0415  # an extra

                return Postgres(dsn, asked.table, asked.lease)
            case "mysql" | "mariadb":
                from delayqueue.relay.mysql import MySQL  # noqa: PLC0415

                return MySQL(dsn, asked.table, asked.lease)
    except ImportError as error:
        raise StartupError(f"{error}: pip install 'delay-queue-server[relay]'") from error
    except ValueError as error:
        raise StartupError(f"--dsn, or {DSN_VARIABLE}: {error}") from error
    raise StartupError(
        f"--dsn, or {DSN_VARIABLE}: must be mysql://USER:PASSWORD@HOST/NAME or postgresql://…"
    )


def _client(asked: Namespace) -> Client:
    try:
        return Client(asked.url, timeout=asked.lease / CALLS, retries=0)
    except ValueError as error:
        raise StartupError(str(error)) from error


def _run(asked: Namespace, database: Database, client: Client) -> int:
    if asked.init_sql:
        say(";\n\n".join(database.statements(asked.table)) + ";")
        return DONE
    if asked.init:
        database.create()
        return DONE
    relay = Relay(database, client, asked.remember)
    if asked.metrics:
        _serve_metrics(relay, asked.metrics)
    with StopSignals() as signals:
        if asked.once:
            while relay.move() and not signals.stop:
                pass
            relay.tell()
        else:
            logger.info("moving the rows of %s", asked.table)
            relay.run(signals, asked.poll)
    moved = ", ".join(f"{count} {result}" for result, count in relay.moved.items() if count)
    logger.info("rows: %s", moved or "none")
    if asked.once and relay.moved["failed"]:
        return REFUSED
    return UNREACHABLE if asked.once and relay.waits else DONE


def _serve_metrics(relay: Relay, address: Address) -> None:
    from delayqueue.relay.metrics import serve  # noqa: PLC0415  # an extra

    try:
        serve(relay, address.host or EVERY_INTERFACE, address.port)
    except OSError as error:
        raise StartupError(f"--metrics {address}: {error}") from error
