"""The verbs that ask a running server over HTTP: one table, from which all else follows."""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from delayqueue.cli import asking, outcome, tables
from delayqueue.cli.asking import at, one_or_many
from delayqueue.cli.call import CallError, Server
from delayqueue.cli.verb import (
    CONFIG_FILE,
    REFUSED,
    USAGE,
    Argument,
    Verb,
    argument,
    complain,
)
from delayqueue.cli.words import (
    at_once,
    body,
    kept,
    length,
    moment,
    per_second,
    schedule,
    secret,
)
from delayqueue.config import StartupError, load
from delayqueue.job import IfExists, State
from delayqueue.schedule import CatchUp
from delayqueue.subscriber import OnFailure, Payload
from delayqueue.values import Address

DEFAULT_URL: Final = "http://127.0.0.1:9277"
LENGTHS: Final = "A LENGTH is a number of seconds, or like 500ms, 15s, 30m, 2h, 1d."
TIMES: Final = (
    "A TIME is now, +2h, 2026-01-31, '2026-01-31 12:00' (local time) or unix seconds;\n"
    "one that has passed is written with an equals sign: --start=-30m."
)

CONNECTION: Final = (
    argument(
        "--url",
        help=f"where the server is [bind_address of -c FILE, else DELAYQUEUE_URL, else {DEFAULT_URL}]",
    ),
    argument("--token", help="lets you in; others may see arguments: better [DELAYQUEUE_TOKEN]"),
    argument("--json", action="store_true", help="print the answer's data as one line of JSON"),
    CONFIG_FILE,
)
# of an address to listen on, the one that leads there from this machine
HERE: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # nobody listens here
NO_FIELDS: Final = {"run", "config", "url", "token", "json"}


def remote(
    name: str,
    text: str,
    ask: asking.Ask,
    *arguments: Argument,
    show: Callable[[Any], str] = tables.facts,
    nothing: str = "",
) -> Verb:
    """A row: `ask` gets the arguments as the fields of a request, `show` makes the answer readable.

    Where the answer is empty, `nothing` is said and the status is 1.
    """

    def run(asked: Namespace) -> int:
        given = vars(asked).items()
        fields = {key: value for key, value in given if value is not None and key not in NO_FIELDS}
        try:
            with _server(asked) as server:
                data = ask(server, fields)
        except CallError as error:
            return complain([str(error)], error.status)
        except StartupError as error:
            return complain(error.lines(None), USAGE)
        if asked.json:
            _print(json.dumps(data, ensure_ascii=False))
        elif data or not nothing:
            _print(outcome.readable(data, show))
        return (
            complain([nothing], REFUSED)
            if nothing and outcome.is_empty(data)
            else outcome.status(data)
        )

    types = [one.options.get("type") for one in arguments]
    notes = [LENGTHS] * (length in types) + [TIMES] * (moment in types)
    return Verb(name, text, run, (*arguments, *CONNECTION), "\n".join(notes))


def _server(asked: Namespace) -> Server:
    url, token = asked.url, asked.token
    if url is None:
        of_file = url_in(asked.config) if asked.config else ""
        url = of_file or os.environ.get("DELAYQUEUE_URL") or DEFAULT_URL
    return Server(url, os.environ.get("DELAYQUEUE_TOKEN", "") if token is None else token)


def url_in(file: Path) -> str:
    """Where the server of that config file listens. Raises StartupError if the file cannot be understood."""
    config = load(file, os.environ)
    host, port = config.bind_address
    address = Address(HERE.get(host, host), port)
    return f"{'https' if config.tls_cert else 'http'}://{address}"


def _print(text: str) -> None:
    """Write to standard output."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


TOPIC: Final = argument("topic", metavar="TOPIC", help="the topic")
ID: Final = argument("id", metavar="ID", help="the job")
IDS: Final = argument("ids", metavar="ID", nargs="+", help="the jobs")
COUNT: Final = argument("--count", metavar="N", type=int, help="so many jobs at most")
DELAY: Final = argument("--delay", metavar="LENGTH", type=length, help="due so long from now")
DUE: Final = argument("--due", metavar="TIME", type=moment, help="due then")
START: Final = argument("--start", metavar="TIME", type=moment, help="due then or later")
END: Final = argument("--end", metavar="TIME", type=moment, help="due then or earlier")
AFTER: Final = argument("--after", metavar="TIME", type=moment, help="due later than that")
BEFORE: Final = argument("--before", metavar="TIME", type=moment, help="due earlier than that")
MESSAGE: Final = argument("--message", metavar="TEXT", help="kept with the job, for `get`")
RECEIPT: Final = argument("--receipt", help="only if this very reservation is not over; for one ID")
NAME: Final = argument("name", metavar="NAME", help="its name")
BODY: Final = argument(
    "body", metavar="BODY", nargs="?", type=body, help="for the worker; - = read stdin"
)
RETRY: Final = argument(
    "--retry", type=schedule, help="delays after failures: 15s,2m,10m, or alipay, or wechat"
)
IF_NAMED: Final = argument(
    "--if-exists",
    choices=list(map(str, IfExists)),
    help="what to do if another has this name [fail]",
)

PUSHED: Final = (
    TOPIC,
    BODY,
    argument("--id", default="*", help="names the job; not given = the server makes one"),
    DELAY,
    DUE,
    argument(
        "--ttr", metavar="LENGTH", type=length, default=60, help="how long a worker may take [60s]"
    ),
    argument("--tag", dest="tags", action="append", help="for `cancel`; may stand several times"),
    RETRY,
    argument(
        "--if-exists",
        choices=list(map(str, IfExists)),
        help="what to do if a job with this id is there [replace]",
    ),
    argument("--retain", metavar="LENGTH", type=length, help="keep what became of it for so long"),
    argument(
        "--expire", metavar="LENGTH", type=length, help="nobody needs it so long after it was due"
    ),
)
POPPED: Final = (
    argument("topic", metavar="TOPIC[,TOPIC]", help="the topics, the most urgent first"),
    argument(
        "--timeout", metavar="LENGTH", type=length, default=0, help="how long to wait [not at all]"
    ),
    COUNT,
)
LISTED: Final = (
    argument("topic", metavar="TOPIC", nargs="?", help="the topic; this or --tag"),
    argument("--tag", help="jobs with this tag"),
    argument("--state", choices=list(map(str, State)), help="jobs in this state"),
    START,
    END,
    AFTER,
    BEFORE,
    argument(
        "--limit",
        metavar="N",
        type=int,
        help=f"so many jobs at most [{asking.DEFAULT_COUNT}]",
    ),
)
KICKED: Final = (
    argument("ids", metavar="ID", nargs="*", help="the jobs; these, --topic or --tag"),
    argument("--topic", help="the first buried jobs of this topic"),
    argument("--tag", help="all buried jobs of this tag, with --topic those of the topic"),
    argument("--state", help="buried or delayed: jobs of the topic or tag in this state [buried]"),
    argument("--count", metavar="N", type=int, help="so many of the topic [1]"),
)
SUBSCRIBED: Final = (
    NAME,
    TOPIC,
    argument("webhook", metavar="URL", help="where the jobs are POSTed to"),
    argument("--order", metavar="N", type=int, help="the least of a topic is called first [0]"),
    argument("--timeout", metavar="LENGTH", type=length, help="how long a call may take [30s]"),
    RETRY,
    argument("--concurrency", metavar="N", type=int, help="calls at once from each server [10]"),
    argument("--secret", type=secret, help="signs the calls; - = read stdin, where nobody sees it"),
    argument("--expect", metavar="TEXT", help="what the answer must be; '*TEXT*' = hold"),
    argument(
        "--on-failure",
        choices=list(map(str, OnFailure)),
        help="what becomes of a job with which it has failed for good [bury]",
    ),
    argument(
        "--payload",
        choices=list(map(str, Payload)),
        help="what is sent: the job's body, or a JSON object with the results so far [body]",
    ),
    IF_NAMED,
)
SCHEDULED: Final = (
    NAME,
    TOPIC,
    BODY,
    argument("--cron", help="minute, hour, day, month, weekday: '30 9 * * MON-FRI'"),
    argument("--tz", metavar="ZONE", help="the time zone of --cron, as Asia/Shanghai [UTC]"),
    argument("--every", metavar="LENGTH", type=length, help="so often, in place of --cron"),
    argument("--ttr", metavar="LENGTH", type=length, help="how long a worker may take [60s]"),
    argument(
        "--catch-up", choices=list(map(str, CatchUp)), help="what to do about missed times [once]"
    ),
    IF_NAMED,
)
OF_TOPIC: Final = argument("topic", metavar="TOPIC", nargs="?", help="the topic; not given = all")

REMOTE: Final = (
    remote("stats", "the sums over all topics", asking.stats, show=tables.stats),
    remote("topics", "every topic with its counts", at("/topics"), show=tables.topics),
    remote("push", "add a job", asking.push, *PUSHED),
    remote(
        "pop",
        "reserve ready jobs, to be worked on and finished",
        asking.pop,
        *POPPED,
        show=tables.found,
        nothing="no job is ready",
    ),
    remote("finish", "end jobs whose work is done", one_or_many("/finish"), IDS, RECEIPT, MESSAGE),
    remote("delete", "end jobs that are not wanted", one_or_many("/delete"), IDS, RECEIPT, MESSAGE),
    remote(
        "get",
        "all that is known of jobs",
        one_or_many("/get"),
        IDS,
        show=tables.found,
        nothing="no such job",
    ),
    remote(
        "peek", "the jobs of a topic that come next", asking.peek, TOPIC, COUNT, show=tables.jobs
    ),
    remote("list", "jobs of a topic or a tag", asking.listed, *LISTED, show=tables.jobs),
    remote(
        "take",
        "remove and print jobs of a range of due times",
        at("/take"),
        *(TOPIC, START, END, AFTER, BEFORE, COUNT),
        show=tables.jobs,
        nothing="no such job",
    ),
    remote(
        "forecast",
        "how many jobs fall due in each step",
        asking.forecast,
        OF_TOPIC,
        argument("--start", metavar="TIME", type=moment, help="from then on [now]"),
        argument("--end", metavar="TIME", type=moment, help="until then [a day after the start]"),
        argument("--step", metavar="LENGTH", type=length, default=3600, help="of a step [1h]"),
        show=tables.forecast,
    ),
    remote(
        "release",
        "give a reserved job back: the attempt failed",
        at("/release"),
        *(ID, RECEIPT, DELAY, MESSAGE),
    ),
    remote(
        "touch",
        "extend a reservation",
        at("/touch"),
        *(ID, RECEIPT),
        argument("--ttr", metavar="LENGTH", type=length, help="so long from now [the job's own]"),
    ),
    remote("bury", "give a job up, to be kept for a person", at("/bury"), ID, RECEIPT, MESSAGE),
    remote("kick", "make buried or delayed jobs ready now", one_or_many("/kick"), *KICKED),
    remote(
        "reschedule",
        "give jobs a new due time",
        one_or_many("/reschedule"),
        argument("ids", metavar="ID", nargs="*", help="the jobs; these or --tag"),
        argument("--tag", help="all jobs of this tag that are not reserved"),
        argument("--topic", help="of the tag only those of this topic"),
        *(DELAY, DUE),
    ),
    remote(
        "cancel",
        "end all jobs of a tag",
        at("/cancel"),
        argument("tag", metavar="TAG", help="the tag"),
        argument("--topic", help="only those of this topic"),
    ),
    remote(
        "pause",
        "hold a topic's deliveries",
        at("/pause"),
        TOPIC,
        argument("--for", dest="seconds", metavar="LENGTH", type=length, help="[until `resume`]"),
    ),
    remote(
        "limit",
        "limit how fast and how many at once a topic's jobs are handed out, and how long buried ones are kept",
        asking.limit,
        TOPIC,
        argument("--rate", metavar="N", type=per_second, help="so many a second, or none"),
        argument("--burst", metavar="N", type=int, help="so many at once after a rest"),
        argument(
            "--concurrency", metavar="N", type=at_once, help="so many reserved at once, or none"
        ),
        argument(
            "--buried-retain",
            metavar="LENGTH",
            type=kept,
            help="how long buried jobs are kept, or none: as the server's settings say",
        ),
    ),
    remote("resume", "let a topic's deliveries go on", at("/resume"), TOPIC),
    remote(
        "purge",
        "drop a topic's jobs without a trace",
        at("/purge"),
        TOPIC,
        argument(
            "--state", help="only delayed, ready, reserved or buried ones, or kept results: ended"
        ),
    ),
    remote("subscribe", "have a url called with a topic's jobs", asking.subscribe, *SUBSCRIBED),
    remote("unsubscribe", "have it called no more", at("/unsubscribe"), NAME),
    remote(
        "subscribers",
        "who is called, in order",
        at("/subscribers"),
        OF_TOPIC,
        show=tables.subscribers,
    ),
    remote("schedule", "have jobs pushed at given times", at("/schedule"), *SCHEDULED),
    remote("unschedule", "have them pushed no more", at("/unschedule"), NAME),
    remote(
        "schedules",
        "what is pushed, and when next",
        at("/schedules"),
        OF_TOPIC,
        show=tables.schedules,
    ),
    remote("whoami", "what the token is good for", at("/whoami")),
)
