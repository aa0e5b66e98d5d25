"""The verbs that ask a running server over HTTP: one table, from which all else follows."""

from typing import Final

from delayqueue.cli import asking, tables
from delayqueue.cli.asking import at, one_or_many
from delayqueue.cli.request import remote
from delayqueue.cli.top import Top
from delayqueue.cli.verb import (
    argument,
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
from delayqueue.client.subscribers import LONGEST_TRIAL_S
from delayqueue.domain.job import IfExists, State
from delayqueue.domain.schedule import CatchUp
from delayqueue.domain.subscriber import OnFailure, Payload

LOOKS_S: Final = 2
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
WATCH: Final = argument(
    "--watch",
    metavar="LENGTH",
    nargs="?",
    const=LOOKS_S,
    type=length,
    help=f"ask again every so often, until q or Ctrl-C [{LOOKS_S}s]",
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
    argument("--priority", metavar="N", type=int, help="the smaller goes first when ready [1024]"),
)
POPPED: Final = (
    argument("topic", metavar="TOPIC[,TOPIC]", help="the topics, the most urgent first"),
    argument(
        "--timeout", metavar="LENGTH", type=length, default=0, help="how long to wait [not at all]"
    ),
    COUNT,
)
LISTED: Final = (
    argument("topic", metavar="TOPIC", nargs="?", help="the topic; not given = all"),
    argument("--tag", help="jobs with this tag"),
    argument(
        "--state",
        choices=list(map(str, State)),
        help="jobs in this state; needed where neither topic nor tag is given",
    ),
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
    argument(
        "--all",
        action="store_true",
        default=None,
        help="all that are in this state now, of all topics where --topic is not given",
    ),
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
TIMES: Final = (
    argument("--cron", help="minute, hour, day, month, weekday: '30 9 * * MON-FRI'"),
    argument("--tz", metavar="ZONE", help="the time zone of --cron, as Asia/Shanghai [UTC]"),
    argument("--every", metavar="LENGTH", type=length, help="so often, in place of --cron"),
)
SCHEDULED: Final = (
    NAME,
    TOPIC,
    BODY,
    *TIMES,
    argument("--ttr", metavar="LENGTH", type=length, help="how long a worker may take [60s]"),
    argument(
        "--catch-up", choices=list(map(str, CatchUp)), help="what to do about missed times [once]"
    ),
    IF_NAMED,
)
OF_TOPIC: Final = argument("topic", metavar="TOPIC", nargs="?", help="the topic; not given = all")

LOOKED_AT: Final = (
    argument("--match", metavar="TEXT", help="those with this in their name"),
    argument("--only", help="buried, late, paused or limited ones"),
    argument("--buried", dest="only", action="store_const", const="buried", help="--only buried"),
    argument("--sort", help="topic, delayed, ready, reserved, buried or oldest [topic]"),
    argument("--reverse", action="store_true", default=None, help="the other way round"),
    argument("--limit", metavar="N", type=int, help="so many at most"),
)

REMOTE: Final = (
    remote("stats", "the sums over all topics", asking.stats, WATCH, show=tables.stats),
    remote(
        "top",
        "servers, busy topics and those that need attention, live",
        at("/stats"),
        argument(
            "--every",
            dest="watch",
            metavar="LENGTH",
            type=length,
            default=LOOKS_S,
            help=f"look so often, until q or Ctrl-C [{LOOKS_S}s]",
        ),
        show=Top(),
    ),
    remote(
        "topics",
        "every topic with its counts",
        at("/topics"),
        *(*LOOKED_AT, WATCH),
        show=tables.topics,
    ),
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
        "peek",
        "the jobs of a topic that come next",
        asking.peek,
        *(TOPIC, COUNT, WATCH),
        show=tables.jobs,
    ),
    remote(
        "list",
        "jobs of a topic, of a tag or in a state",
        asking.listed,
        *(*LISTED, WATCH),
        show=tables.jobs,
    ),
    remote(
        "find",
        "jobs with a text in their id or body",
        asking.find,
        argument("--id", metavar="TEXT", help="a part of the id"),
        argument("--text", help="a part of the body, as it was pushed"),
        argument("--topic", help="only of this topic"),
        argument(
            "--limit", metavar="N", type=int, help=f"so many at most [{asking.DEFAULT_COUNT}]"
        ),
        show=tables.jobs,
        nothing="no such job",
    ),
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
        WATCH,
        show=tables.forecast,
    ),
    remote(
        "buried",
        "dead letters by reason",
        at("/buried"),
        OF_TOPIC,
        argument("--reason", help="only this one"),
        argument("--ids", metavar="N", type=int, help="so many ids of each [1]"),
        WATCH,
        show=tables.buried,
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
    remote("kick", "make buried or delayed jobs ready now", asking.kick, *KICKED),
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
        argument(
            "--calls", action="store_true", default=None, help="tell how their calls went, too"
        ),
        WATCH,
        show=tables.subscribers,
    ),
    remote("pause-subscriber", "hold the calls of a subscriber", at("/pause-subscriber"), NAME),
    remote("resume-subscriber", "let them go on", at("/resume-subscriber"), NAME),
    remote(
        "try-subscriber",
        "call a webhook with a made-up job",
        at("/try-subscriber", LONGEST_TRIAL_S),
        NAME,
        BODY,
    ),
    remote("schedule", "have jobs pushed at given times", at("/schedule"), *SCHEDULED),
    remote("unschedule", "have them pushed no more", at("/unschedule"), NAME),
    remote(
        "schedules",
        "what is pushed, and when next",
        at("/schedules"),
        *(OF_TOPIC, WATCH),
        show=tables.schedules,
    ),
    remote(
        "preview-schedule",
        "the next ten times of a schedule",
        at("/preview-schedule"),
        *TIMES,
        show=tables.occurrences,
    ),
    remote("run-schedule", "push a job of a schedule now", at("/run-schedule"), NAME),
    remote("whoami", "what the token is good for", at("/whoami")),
)
