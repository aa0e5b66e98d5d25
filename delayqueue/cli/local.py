"""The verbs that act on this machine: run the server or a worker, work with the settings and the store."""

import os
import signal
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any, Final

from delayqueue import log
from delayqueue.cli.completing import SHELLS
from delayqueue.cli.remote_server import LOAD
from delayqueue.cli.subcommand import (
    CONFIG_FILE,
    NO_CONFIG_FILE,
    USAGE,
    Argument,
    Subcommand,
    argument,
    complain,
    flag,
    late,
    option,
)
from delayqueue.cli.words import interval, positive
from delayqueue.config.startup import StartupError


def local(
    name: str, text: str, work: str, *arguments: Argument, reloads: bool = False
) -> Subcommand:
    """A row for a verb with settings: `work` names a function of config and arguments that returns the exit status.

    One that `reloads` on SIGHUP is not ended by it while it starts: it gets the signal when it waits for it.
    """

    def run(asked: Namespace) -> int:
        if reloads and hasattr(signal, "SIGHUP"):  # Windows, where no server runs, has none
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        config = None
        try:
            config = LOAD(asked.config, os.environ)
            log.set_up(config.log_level, config.log_format)
            status: int = late(work)(config, asked)
        except StartupError as error:
            return complain(error.lines(config), USAGE)
        return status

    return Subcommand(name, text, run, (*arguments, CONFIG_FILE))


def _as_setting(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Parse an argument as a setting's value, whose ValueError says what it must be."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise ArgumentTypeError(f"{text!r}: {error}") from None

    return parsed


@_as_setting
def _address(text: str) -> Any:
    return resolve_name("delayqueue.config.values:address")(text, least_port=1)


@_as_setting
def _buckets(text: str) -> Any:
    return resolve_name("delayqueue.config.config:OPTIONS")["bucket_size"].parse(text)


IMPORTED: Final = (
    argument(
        "source",
        metavar="URL",
        help="the old Redis with its database: redis://[:PASSWORD@]HOST:PORT/1",
    ),
    option("--key-prefix TEXT", 'prefix of job keys: "" (ouqiang) or dq_key_ (php-cpm) [detected]'),
    option("--bucket-name NAME", "name of the old buckets, with %%d [bucket_name]"),
    option("--queue-name NAME", "name of the old ready lists, with %%s [queue_name]"),
)
WORKER: Final = (
    argument("name", metavar="MODULE:NAME", help="like tasks:worker, importable from here"),
    option("--url", "URL of the server [the Worker's, else DELAYQUEUE_URL]"),
    option("--concurrency N", "jobs at a time [the Worker's]", type=positive),
    option("--grace LENGTH", "time for running jobs to finish [30s]"),
    option("--processes N", "processes; one that ends is replaced [1]", type=positive),
    option("--max-jobs N", "end a process after N jobs", type=positive),
    option("--max-memory MIB", "end a process that holds MIB or more", type=positive),
    option(
        "--health HOST:PORT",
        "answer /healthz and /metrics there; each process has the next port",
        type=_address,
    ),
    flag("--reload", "restart when a .py file here changes"),
    flag("--prune", "remove the schedules of tasks that the worker does not have"),
    argument("--log-level", default="info", choices=log.LEVELS),
    NO_CONFIG_FILE,
)
RELAY: Final = (
    option("--dsn URL", "the database: mysql://… or postgresql://… [DELAYQUEUE_RELAY_DSN]"),
    option("--table NAME", "the table [delay_queue_outbox]", default="delay_queue_outbox"),
    option("--url", "URL of the server [DELAYQUEUE_URL]"),
    option(
        "--remember LENGTH",
        "how long the server remembers a job after its end, in case its row is pushed again [10m]",
        default=600,
    ),
    option(
        "--lease N",
        "seconds after which others may take the rows of a relay that hangs [30]",
        type=positive,
        default=30,
    ),
    option(
        "--poll LENGTH",
        "how often to look for rows; less often while none come [100ms; 5s, where NOTIFY tells]",
        type=interval,
    ),
    option("--metrics HOST:PORT", "answer GET /metrics there [nowhere]", type=_address),
    flag("--once", "move what is there and end: for cron"),
    flag("--init", "make the table, unless it is there"),
    flag("--init-sql", "print the SQL that makes the table"),
    argument("--log-level", default="info", choices=log.LEVELS),
    NO_CONFIG_FILE,
)

LOCAL: Final = (
    local(
        "serve",
        "run the server; the default without a verb",
        "delayqueue.cli.serve:serve",
        reloads=True,
    ),
    Subcommand(
        "check",
        "check the settings and the store; start and write nothing",
        late("delayqueue.cli.checking:check"),
        (CONFIG_FILE,),
    ),
    local(
        "healthy",
        "ask the server of these settings for /healthz: a health check",
        "delayqueue.cli.healthy:healthy",
    ),
    Subcommand("worker", "run a Worker", late("delayqueue.cli.working:work"), WORKER),
    Subcommand(
        "relay",
        "move the rows of an outbox, a table in your database, to the server",
        late("delayqueue.cli.relaying:relay"),
        RELAY,
    ),
    local(
        "import",
        "import the jobs of ouqiang/delay-queue or php-cpm/delay-queue",
        "delayqueue.cli.importing:import_all",
        *IMPORTED,
    ),
    local(
        "fsck",
        "check the store for damage, and repair it",
        "delayqueue.cli.fsck:fsck",
        flag("--repair", "repair what is found"),
        flag("--json", "print one line of JSON"),
    ),
    local(
        "rebalance",
        "change the number of buckets; servers wait meanwhile",
        "delayqueue.cli.rebalance:rebalance",
        option(
            "--buckets N",
            "the new number; the present number searches for misplaced jobs",
            type=_buckets,
            required=True,
        ),
    ),
    Subcommand(
        "completion",
        "print the shell code that completes verbs, options and topics",
        late("delayqueue.cli.completing:completion"),
        (
            argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS)),
            NO_CONFIG_FILE,
        ),
        'For bash, in ~/.bashrc: eval "$(delay-queue completion bash)"',
    ),
)
