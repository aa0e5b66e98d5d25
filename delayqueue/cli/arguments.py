"""Arguments that several remote verbs share; a verb's own ones are in remote.py."""

from typing import Final

from delayqueue.cli import asking
from delayqueue.cli.subcommand import argument
from delayqueue.cli.words import body, length, moment, schedule, secret, whole
from delayqueue.domain.job import IfExists, State
from delayqueue.domain.schedule import CatchUp
from delayqueue.domain.subscriber import OnFailure, Payload

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

PUSHED: Final = (
    TOPIC,
    BODY,
    argument("--id", default="*", help="the job's id; by default the server generates one"),
    DELAY,
    DUE,
    argument(
        "--ttr", metavar="LENGTH", type=length, default=60, help="how long a worker may take [60s]"
    ),
    argument("--tag", dest="tags", action="append", help="for `cancel`; may be repeated"),
    RETRY,
    argument(
        "--if-exists",
        choices=list(map(str, IfExists)),
        help="what to do if the id already exists [replace]",
    ),
    argument(
        "--retain", metavar="LENGTH", type=length, help="keep its record this long after its end"
    ),
    argument(
        "--expire", metavar="LENGTH", type=length, help="it expires this long after its due time"
    ),
    argument(
        "--priority",
        metavar="N",
        type=whole,
        help="among ready jobs the smallest goes first [1024]",
    ),
)
POPPED: Final = (
    argument("topic", metavar="TOPIC[,TOPIC]", help="the topics, the most important one first"),
    argument(
        "--timeout", metavar="LENGTH", type=length, default=0, help="how long to wait [do not wait]"
    ),
    COUNT,
)
LISTED: Final = (
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
        help=f"most jobs to return [{asking.DEFAULT_COUNT}]",
    ),
)
KICKED: Final = (
    argument("ids", metavar="ID", nargs="*", help="the jobs; these, --topic or --tag"),
    argument("--topic", help="the first buried jobs of this topic"),
    argument("--tag", help="all buried jobs of this tag, with --topic those of the topic"),
    argument("--state", help="jobs of the topic or tag in this state: buried or delayed [buried]"),
    argument("--count", metavar="N", type=whole, help="how many of the topic [1]"),
    argument("--body", type=body, help="replaces the body of the job; - = read stdin"),
    argument(
        "--all",
        action="store_true",
        default=None,
        help="all jobs now in this state; without --topic, in all topics",
    ),
)
SUBSCRIBED: Final = (
    NAME,
    TOPIC,
    argument("webhook", metavar="URL", help="the URL that jobs are POSTed to"),
    argument("--order", metavar="N", type=whole, help="a topic's lowest order is called first [0]"),
    argument("--timeout", metavar="LENGTH", type=length, help="how long a call may take [30s]"),
    RETRY,
    argument("--concurrency", metavar="N", type=whole, help="calls at once from each server [10]"),
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
)
TIMES: Final = (
    argument("--cron", help="minute, hour, day, month, weekday: '30 9 * * MON-FRI'"),
    argument("--tz", metavar="ZONE", help="the time zone of --cron, as Asia/Shanghai [UTC]"),
    argument("--every", metavar="LENGTH", type=length, help="the interval, instead of --cron"),
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
    argument("--paused", action="store_const", const=True, help="keep it, and push nothing"),
    IF_NAMED,
)
OF_TOPIC: Final = argument("topic", metavar="TOPIC", nargs="?", help="the topic; not given = all")

LOOKED_AT: Final = (
    argument("--match", metavar="TEXT", help="topics with this in their name"),
    argument("--only", help="buried, late, paused or limited ones"),
    argument("--buried", dest="only", action="store_const", const="buried", help="--only buried"),
    argument("--sort", help="topic, delayed, ready, reserved, buried or oldest [topic]"),
    argument("--reverse", action="store_true", default=None, help="in reverse order"),
    argument("--limit", metavar="N", type=whole, help="most topics to return"),
)
