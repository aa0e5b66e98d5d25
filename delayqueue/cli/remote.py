"""The verbs that ask a running server over HTTP, in one table by family."""

from typing import Final

from delayqueue.cli import asking, tables
from delayqueue.cli.asking import DEFAULT_COUNT, at, one_or_many
from delayqueue.cli.request import remote
from delayqueue.cli.subcommand import Families, argument
from delayqueue.cli.top import Top
from delayqueue.cli.words import (
    at_once,
    body,
    distance,
    kept,
    length,
    moment,
    per_second,
    schedule,
    secret,
    whole,
)
from delayqueue.client.subscribers import LONGEST_TRIAL_S
from delayqueue.domain.job import IfExists, State
from delayqueue.domain.schedule import CatchUp
from delayqueue.domain.subscriber import OnFailure, Payload

# arguments of several verbs
LOOKS_S: Final = 2
TOPIC: Final = argument("topic", metavar="TOPIC", help="the topic")
ID: Final = argument("id", metavar="ID", help="the job")
IDS: Final = argument("ids", metavar="ID", nargs="+", help="the jobs")
COUNT: Final = argument("--count", metavar="N", type=whole, help="most jobs to return")
DELAY: Final = argument("--delay", metavar="LENGTH", type=length, help="due after this time")
DUE: Final = argument("--due", metavar="TIME", type=moment, help="due then")
START: Final = argument("--start", metavar="TIME", type=moment, help="due at this time or later")
END: Final = argument("--end", metavar="TIME", type=moment, help="due at this time or earlier")
AFTER: Final = argument("--after", metavar="TIME", type=moment, help="due after this time")
BEFORE: Final = argument("--before", metavar="TIME", type=moment, help="due before this time")
MESSAGE: Final = argument("--message", metavar="TEXT", help="kept with the job, for `get`")
RECEIPT: Final = argument("--receipt", help="act on this reservation only; with one ID")
WATCH: Final = argument(
    "--watch",
    metavar="LENGTH",
    nargs="?",
    const=LOOKS_S,
    type=length,
    help=f"repeat at this interval, until q or Ctrl-C [{LOOKS_S}s]",
)
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
    help="what to do if the name is taken [fail]",
)

TIMES: Final = (
    argument("--cron", help="minute, hour, day, month, weekday: '30 9 * * MON-FRI'"),
    argument("--tz", metavar="ZONE", help="the time zone of --cron, as Asia/Shanghai [UTC]"),
    argument("--every", metavar="LENGTH", type=length, help="the interval, instead of --cron"),
)
OF_TOPIC: Final = argument("topic", metavar="TOPIC", nargs="?", help="the topic; not given = all")

REMOTE: Final[Families] = {
    "a running server over HTTP (--url)": (
        remote("stats", "totals over all topics", asking.stats, WATCH, show=tables.stats),
        remote(
            "top",
            "a live view of servers, busy topics and topics that need attention",
            at("/stats"),
            argument(
                "--every",
                dest="watch",
                metavar="LENGTH",
                type=length,
                default=LOOKS_S,
                help=f"refresh at this interval, until q or Ctrl-C [{LOOKS_S}s]",
            ),
            show=Top(),
        ),
        remote(
            "topics",
            "list topics with their counts",
            at("/topics"),
            argument("--match", metavar="TEXT", help="topics with this in their name"),
            argument("--only", help="buried, late, paused or limited ones"),
            argument(
                "--buried", dest="only", action="store_const", const="buried", help="--only buried"
            ),
            argument("--sort", help="topic, delayed, ready, reserved, buried or oldest [topic]"),
            argument("--reverse", action="store_true", default=None, help="in reverse order"),
            argument("--limit", metavar="N", type=whole, help="most topics to return"),
            WATCH,
            show=tables.topics,
        ),
        remote(
            "history",
            "show throughput, lateness and depth over time",
            at("/history"),
            OF_TOPIC,
            argument("--span", help="the last 3h, 2d or 30d [3h]"),
            show=tables.history,
        ),
        remote(
            "forecast",
            "count the jobs that fall due in each step",
            asking.forecast,
            OF_TOPIC,
            argument("--start", metavar="TIME", type=moment, help="start of the range [now]"),
            argument(
                "--end",
                metavar="TIME",
                type=moment,
                help="end of the range [a day after the start]",
            ),
            argument("--step", metavar="LENGTH", type=length, default=3600, help="of a step [1h]"),
            WATCH,
            show=tables.forecast,
        ),
        remote("whoami", "show what the token may do", at("/whoami")),
    ),
    "jobs": (
        remote(
            "push",
            "add a job",
            asking.push,
            TOPIC,
            BODY,
            argument("--id", default="*", help="the job's id; by default the server generates one"),
            DELAY,
            DUE,
            argument(
                "--ttr",
                metavar="LENGTH",
                type=length,
                default=60,
                help="how long a worker may take [60s]",
            ),
            argument("--tag", dest="tags", action="append", help="for `cancel`; may be repeated"),
            RETRY,
            argument(
                "--if-exists",
                choices=list(map(str, IfExists)),
                help="what to do if the id already exists [replace]",
            ),
            argument(
                "--retain",
                metavar="LENGTH",
                type=length,
                help="keep its record this long after its end",
            ),
            argument(
                "--expire",
                metavar="LENGTH",
                type=length,
                help="it expires this long after its due time",
            ),
            argument(
                "--priority",
                metavar="N",
                type=whole,
                help="among ready jobs the smallest goes first [1024]",
            ),
        ),
        remote(
            "pop",
            "reserve ready jobs to work on",
            asking.pop,
            argument(
                "topic", metavar="TOPIC[,TOPIC]", help="the topics, the most important one first"
            ),
            argument(
                "--timeout",
                metavar="LENGTH",
                type=length,
                default=0,
                help="how long to wait [do not wait]",
            ),
            COUNT,
            show=tables.found,
            nothing="no job is ready",
        ),
        remote(
            "finish",
            "finish jobs whose work is done",
            one_or_many("/finish"),
            IDS,
            RECEIPT,
            MESSAGE,
        ),
        remote(
            "release",
            "give a reserved job back after a failed attempt",
            at("/release"),
            *(ID, RECEIPT, DELAY, MESSAGE),
        ),
        remote(
            "touch",
            "extend a reservation",
            at("/touch"),
            *(ID, RECEIPT),
            argument(
                "--ttr",
                metavar="LENGTH",
                type=length,
                help="the new TTR, from now on [the job's own]",
            ),
        ),
        remote(
            "bury",
            "give up on a job and keep it as a dead letter",
            at("/bury"),
            ID,
            RECEIPT,
            MESSAGE,
        ),
        remote(
            "delete",
            "delete jobs that are no longer needed",
            one_or_many("/delete"),
            IDS,
            RECEIPT,
            MESSAGE,
        ),
        remote(
            "cancel",
            "cancel all jobs with a tag",
            at("/cancel"),
            argument("tag", metavar="TAG", help="the tag"),
            argument("--topic", help="only in this topic"),
            nothing="no job has this tag; to cancel a job by its id: delay-queue delete ID",
        ),
        remote(
            "take",
            "remove and print jobs in a range of due times",
            at("/take"),
            *(TOPIC, START, END, AFTER, BEFORE, COUNT),
            show=tables.jobs,
            nothing="no such job",
        ),
        remote(
            "kick",
            "make buried or delayed jobs ready now",
            asking.kick,
            argument("ids", metavar="ID", nargs="*", help="the jobs; these, --topic or --tag"),
            argument("--topic", help="the first buried jobs of this topic"),
            argument("--tag", help="all buried jobs of this tag, with --topic those of the topic"),
            argument(
                "--state", help="jobs of the topic or tag in this state: buried or delayed [buried]"
            ),
            argument("--count", metavar="N", type=whole, help="how many of the topic [1]"),
            argument("--body", type=body, help="replaces the body of the job; - = read stdin"),
            argument(
                "--all",
                action="store_true",
                default=None,
                help="all jobs now in this state; without --topic, in all topics",
            ),
        ),
        remote(
            "reschedule",
            "give jobs a new due time or priority",
            one_or_many("/reschedule"),
            argument("ids", metavar="ID", nargs="*", help="the jobs; these or --tag"),
            argument("--tag", help="all jobs of this tag that are not reserved"),
            argument("--topic", help="only the tag's jobs in this topic"),
            *(DELAY, DUE),
            argument(
                "--by",
                metavar="LENGTH",
                type=distance,
                help="move each job's own due time; --by=-1h = an hour earlier",
            ),
            argument("--priority", metavar="N", type=whole, help="the new priority [their own]"),
        ),
    ),
    "looking for jobs": (
        remote(
            "get",
            "show jobs with all their details",
            one_or_many("/get"),
            IDS,
            show=tables.found,
            nothing="no such job",
        ),
        remote(
            "peek",
            "show a topic's next jobs",
            asking.peek,
            *(TOPIC, COUNT, WATCH),
            show=tables.jobs,
        ),
        remote(
            "list",
            "list jobs by topic, tag or state",
            asking.listed,
            argument("topic", metavar="TOPIC", nargs="?", help="the topic; not given = all"),
            argument("--tag", help="jobs with this tag"),
            argument(
                "--state",
                metavar="STATE",
                choices=list(map(str, State)),
                help=f"jobs in this state: {', '.join(State)}; required without topic and tag",
            ),
            START,
            END,
            AFTER,
            BEFORE,
            argument(
                "--limit",
                metavar="N",
                type=whole,
                help=f"most jobs to return [{DEFAULT_COUNT}]",
            ),
            WATCH,
            show=tables.jobs,
        ),
        remote(
            "find",
            "find jobs by text in their id or body",
            asking.find,
            argument("--id", metavar="TEXT", help="a part of the id"),
            argument("--text", help="a part of the body, as pushed"),
            argument("--topic", help="only in this topic"),
            argument(
                "--limit", metavar="N", type=whole, help=f"most jobs to return [{DEFAULT_COUNT}]"
            ),
            show=tables.jobs,
            nothing="no such job",
        ),
        remote(
            "buried",
            "list dead letters by reason",
            at("/buried"),
            OF_TOPIC,
            argument("--reason", help="only this reason"),
            argument("--ids", metavar="N", type=whole, help="most ids per reason [1]"),
            WATCH,
            show=tables.buried,
        ),
    ),
    "topics": (
        remote(
            "pause",
            "pause a topic's deliveries",
            at("/pause"),
            TOPIC,
            argument(
                "--for", dest="seconds", metavar="LENGTH", type=length, help="[until `resume`]"
            ),
        ),
        remote("resume", "resume a topic's deliveries", at("/resume"), TOPIC),
        remote(
            "limit",
            "limit a topic's rate and concurrency, and how long its dead letters are kept",
            asking.limit,
            TOPIC,
            argument("--rate", metavar="N", type=per_second, help="deliveries a second, or none"),
            argument("--burst", metavar="N", type=whole, help="deliveries at once after a pause"),
            argument(
                "--concurrency", metavar="N", type=at_once, help="jobs reserved at once, or none"
            ),
            argument(
                "--buried-retain",
                metavar="LENGTH",
                type=kept,
                help="how long buried jobs are kept; none = the server's setting",
            ),
        ),
        remote(
            "purge",
            "drop a topic's jobs without a trace",
            at("/purge"),
            TOPIC,
            argument(
                "--state",
                help="only delayed, ready, reserved or buried ones, or kept results: ended",
            ),
        ),
    ),
    "subscribers": (
        remote(
            "subscribe",
            "call a URL with a topic's jobs",
            asking.subscribe,
            NAME,
            TOPIC,
            argument("webhook", metavar="URL", help="the URL that jobs are POSTed to"),
            argument(
                "--order",
                metavar="N",
                type=whole,
                help="a topic's lowest order is called first [0]",
            ),
            argument(
                "--timeout", metavar="LENGTH", type=length, help="how long a call may take [30s]"
            ),
            RETRY,
            argument(
                "--concurrency", metavar="N", type=whole, help="calls at once from each server [10]"
            ),
            argument(
                "--secret",
                type=secret,
                help="signs the calls; - = read it from stdin, so that it stays secret",
            ),
            argument("--expect", metavar="TEXT", help="what the answer must be; '*TEXT*' = hold"),
            argument(
                "--on-failure",
                choices=list(map(str, OnFailure)),
                help="what happens to a job after the last failure [bury]",
            ),
            argument(
                "--payload",
                choices=list(map(str, Payload)),
                help="what is sent: the job's body, or a JSON object with the results so far [body]",
            ),
            IF_NAMED,
        ),
        remote("unsubscribe", "remove a subscriber", at("/unsubscribe"), NAME),
        remote(
            "subscribers",
            "list subscribers in calling order",
            at("/subscribers"),
            OF_TOPIC,
            argument(
                "--calls", action="store_true", default=None, help="include their recent calls"
            ),
            WATCH,
            show=tables.subscribers,
        ),
        remote("pause-subscriber", "pause a subscriber", at("/pause-subscriber"), NAME),
        remote("resume-subscriber", "resume a subscriber", at("/resume-subscriber"), NAME),
        remote(
            "try-subscriber",
            "call a webhook once with a made-up job",
            at("/try-subscriber", LONGEST_TRIAL_S),
            NAME,
            BODY,
        ),
    ),
    "schedules": (
        remote(
            "schedule",
            "push jobs on a schedule",
            at("/schedule"),
            NAME,
            TOPIC,
            BODY,
            *TIMES,
            argument(
                "--ttr", metavar="LENGTH", type=length, help="how long a worker may take [60s]"
            ),
            argument(
                "--catch-up",
                choices=list(map(str, CatchUp)),
                help="what to do about missed times [once]",
            ),
            argument(
                "--paused", action="store_const", const=True, help="keep it, and push nothing"
            ),
            IF_NAMED,
        ),
        remote("unschedule", "remove a schedule", at("/unschedule"), NAME),
        remote(
            "schedules",
            "list schedules and their next run",
            at("/schedules"),
            *(OF_TOPIC, WATCH),
            show=tables.schedules,
        ),
        remote(
            "preview-schedule",
            "show the next ten runs of a schedule",
            at("/preview-schedule"),
            *TIMES,
            show=tables.occurrences,
        ),
        remote("run-schedule", "run a schedule now", at("/run-schedule"), NAME),
    ),
}
