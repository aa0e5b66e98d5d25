"""The verbs that do something here: run the server or a worker, work with the settings and the store."""

import os
import sys
from argparse import SUPPRESS, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Final

from delayqueue import log, values
from delayqueue.cli.verb import REFUSED, USAGE, Argument, Verb, argument, late
from delayqueue.config import MOST_BUCKETS, StartupError, load

# after the verb as well as before it
CONFIG_FILE: Final = argument(
    "-c", dest="config", metavar="FILE", type=Path, default=SUPPRESS, help="config file"
)


def local(name: str, text: str, work: str, *arguments: Argument, failed: int) -> Verb:
    """A row of a verb with settings: `work` names a function of them and the arguments that returns the exit status.

    A StartupError is one line and the status `failed`.
    """

    def run(asked: Namespace) -> int:
        config = None
        try:
            config = load(asked.config, os.environ)
            log.set_up(config.log_level, config.log_format)
            return late(work)(config, asked)
        except StartupError as error:
            place = config.places.get(error.key) if config else None
            message = f"{place}: {error}" if place else str(error)
            sys.stderr.write(f"delay-queue: {log.one_line(message)}\n")
            return failed

    return Verb(name, text, run, (*arguments, CONFIG_FILE))


def _buckets(text: str) -> int:
    try:
        return values.whole(1, MOST_BUCKETS)(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


IMPORTED: Final = (
    argument(
        "source",
        metavar="URL",
        help="the old Redis with its database: redis://[:PASSWORD@]HOST:PORT/1",
    ),
    argument(
        "--key-prefix",
        metavar="TEXT",
        help='before the ids of jobs: "" (ouqiang) or dq_key_ (php-cpm) [what is found]',
    ),
    argument("--bucket-name", metavar="NAME", help="of the old buckets, with %%d [bucket_name]"),
    argument("--queue-name", metavar="NAME", help="of the old ready lists, with %%s [queue_name]"),
)
WORKER: Final = (
    argument("name", metavar="MODULE:NAME", help="such as tasks:worker, found from here"),
    argument("--reload", action="store_true", help="start again when a .py file here changes"),
    argument("--log-level", default="info", choices=("debug", "info", "warning", "error")),
)

LOCAL: Final = (
    local(
        "serve",
        "run the server; meant where no verb is given",
        "delayqueue.cli.running:serve",
        failed=USAGE,
    ),
    local(
        "check",
        "try the settings and the store, say what is wrong",
        "delayqueue.cli.running:check",
        failed=REFUSED,
    ),
    local(
        "import",
        "take over the jobs of ouqiang/delay-queue or php-cpm/delay-queue",
        "delayqueue.cli.importing:take_over",
        *IMPORTED,
        failed=USAGE,
    ),
    local(
        "fsck",
        "look through the store for what is not whole",
        "delayqueue.cli.fsck:fsck",
        argument("--repair", action="store_true", help="mend what is found"),
        argument("--json", action="store_true", help="print one line of JSON"),
        failed=USAGE,
    ),
    local(
        "rebalance",
        "change the number of buckets while servers work",
        "delayqueue.cli.rebalance:rebalance",
        argument(
            "--buckets",
            type=_buckets,
            required=True,
            metavar="N",
            help="how many there shall be; the number that there are: look for jobs that went astray",
        ),
        failed=USAGE,
    ),
    Verb("worker", "run a Worker of yours", late("delayqueue.cli.working:work"), WORKER),
)
