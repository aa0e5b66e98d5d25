"""The verbs that ask a running server over HTTP, in one table by family."""

from typing import Final

from delayqueue.cli import asking, tables
from delayqueue.cli.asking import DEFAULT_COUNT, at
from delayqueue.cli.request import remote
from delayqueue.cli.subcommand import Families, argument, choice, flag, option
from delayqueue.cli.top import Top
from delayqueue.cli.words import (
    UNLIMITED,
    body,
    distance,
    header,
    interval,
    length,
    number,
    or_none,
    positive,
    schedule,
    secret,
    whole,
    yes_no,
)
from delayqueue.domain.job import CHANGE, IfExists, State
from delayqueue.domain.limit import WhenFull
from delayqueue.domain.push_fields import FIELDS
from delayqueue.domain.schedule import CatchUp
from delayqueue.domain.subscriber import LONGEST_TRIAL_S, OnFailure, Payload

# arguments of several verbs
LOOKS_S: Final = 2
UNTIL: Final = f"at this interval, until q or Ctrl-C [{LOOKS_S}s]"
TOPIC: Final = argument("topic", metavar="TOPIC", help="the topic")
OF_TOPIC: Final = argument("topic", metavar="TOPIC", nargs="?", help="the topic; not given = all")
ID: Final = argument("id", metavar="ID", help="the job")
IDS: Final = argument("ids", metavar="ID", nargs="+", help="the jobs")
NAME: Final = argument("name", metavar="NAME", help="its name")
BODY: Final = argument(
    "body", metavar="BODY", nargs="?", type=body, help="for the worker; - = read stdin"
)
COUNT: Final = option("--count N", "most jobs to return", type=positive)
LIMIT: Final = option("--limit N", f"most jobs to return [{DEFAULT_COUNT}]", type=positive)
DELAY: Final = option("--delay LENGTH", "due after this time")
DUE: Final = option("--due TIME", "due then")
RANGE: Final = (
    option("--start TIME", "due at this time or later"),
    option("--end TIME", "due at this time or earlier"),
    option("--after TIME", "due after this time"),
    option("--before TIME", "due before this time"),
)
MESSAGE: Final = option("--message TEXT", "kept with the job, for `get`")
RECEIPT: Final = option("--receipt", "act on this reservation only; with one ID")
WATCH: Final = option("--watch LENGTH", f"repeat {UNTIL}", nargs="?", const=LOOKS_S, type=interval)
RETRY: Final = option(
    "--retry", "delays after failures: 15s,2m,10m, or alipay, or wechat", type=schedule
)
MOST: Final = option("--limit N", "most to return [all]", type=positive)
IF_NAMED: Final = choice(
    "--if-exists",
    (*IfExists, CHANGE),
    "what to do if the name is taken [fail]; change = change what is given, and nothing else",
)
NEW_TOPIC: Final = argument(
    "topic", metavar="TOPIC", nargs="?", help="the topic; required unless it is changed"
)
TIMES: Final = (
    option("--cron", "minute, hour, day, month, weekday: '30 9 * * MON-FRI'"),
    option("--tz ZONE", "the time zone of --cron, as Asia/Shanghai [UTC]"),
    option("--every LENGTH", "the interval, instead of --cron"),
)
CALL: Final = (
    option("--call URL", "the server calls it when the job is due", dest="call_url"),
    option("--call-method", "POST, PUT, PATCH, DELETE or GET [POST]"),
    option(
        "--call-header",
        "a header of the call, as 'NAME: VALUE'; may be repeated",
        dest="call_headers",
        action="append",
        type=header,
    ),
    option("--call-timeout LENGTH", "how long the call may take [30s]"),
    option("--call-expect TEXT", "what the answer must be, or contain as '*TEXT*' [any]"),
    flag("--call-give-up", "bury the job at once after a 4xx such as 404"),
)

REMOTE: Final[Families] = {
    "a running server over HTTP (--url)": (
        remote("stats", "totals over all topics", WATCH, ask=asking.stats, show=tables.stats),
        remote(
            "top",
            "a live view of servers, busy topics and topics that need attention",
            option(
                "--every LENGTH", f"refresh {UNTIL}", dest="watch", default=LOOKS_S, type=interval
            ),
            ask=at("/stats"),
            show=Top(),
        ),
        remote(
            "topics",
            "list topics with their counts",
            option("--match TEXT", "topics with this in their name"),
            option("--only", "buried, late, paused, limited or full ones"),
            argument(
                "--buried", dest="only", action="store_const", const="buried", help="--only buried"
            ),
            option("--sort", "topic, delayed, ready, reserved, buried or oldest [topic]"),
            flag("--reverse", "in reverse order"),
            option("--limit N", "most topics to return", type=positive),
            flag("--due-soon", "count the jobs that fall due within 60, 300 and 3600 seconds"),
            WATCH,
            show=tables.topics,
        ),
        remote(
            "history",
            "show throughput, lateness and depth over time",
            OF_TOPIC,
            option("--span", "the last 3h, 2d or 30d [3h]"),
            show=tables.history,
        ),
        remote(
            "forecast",
            "count the jobs that fall due in each step",
            OF_TOPIC,
            option("--start TIME", "start of the range [now]"),
            option("--end TIME", "end of the range [a day after the start]"),
            option("--step LENGTH", "of a step [1h]", default=3600),
            WATCH,
            ask=asking.forecast,
            show=tables.forecast,
        ),
        remote(
            "workers",
            "list the workers that send their names, and the jobs that they have reserved",
            WATCH,
            show=tables.workers,
        ),
        remote("whoami", "show what the token may do"),
        remote("accept-store", "confirm that an emptied or replaced store is a new one"),
    ),
    "jobs": (
        remote(
            "push",
            "add a job",
            TOPIC,
            BODY,
            option("--id", "the job's id; by default the server generates one", default="*"),
            DELAY,
            DUE,
            option("--ttr LENGTH", "how long a worker may take [60s]", default=60),
            option("--tag", "for `cancel`; may be repeated", dest="tags", action="append"),
            RETRY,
            choice("--if-exists", IfExists, "what to do if the id already exists [replace]"),
            *(option(field.option, field.help) for field in FIELDS if field.option),
            *CALL,
            ask=asking.push,
        ),
        remote(
            "pop",
            "reserve ready jobs to work on",
            argument(
                "topic", metavar="TOPIC[,TOPIC]", help="the topics, the most important one first"
            ),
            option("--timeout LENGTH", "how long to wait [do not wait]", default=0),
            COUNT,
            ask=asking.pop,
            show=tables.found,
            nothing="no job is ready",
            give_back=asking.release,
        ),
        remote("finish", "finish jobs whose work is done", IDS, RECEIPT, MESSAGE),
        remote(
            "release",
            "give a reserved job back after a failed attempt",
            ID,
            RECEIPT,
            DELAY,
            MESSAGE,
        ),
        remote(
            "touch",
            "extend a reservation",
            ID,
            RECEIPT,
            option("--ttr LENGTH", "the new TTR, from now on [the job's own]"),
            option("--progress PERCENT", "how far the job is, 0 to 100, for `get`", type=number),
            option("--message TEXT", "what its worker is at, for `get`"),
        ),
        remote("bury", "give up on a job and keep it as a dead letter", ID, RECEIPT, MESSAGE),
        remote("delete", "delete jobs that are no longer needed", IDS, RECEIPT, MESSAGE),
        remote(
            "cancel",
            "cancel all jobs with a tag",
            argument("tag", metavar="TAG", help="the tag"),
            option("--topic", "only in this topic"),
            nothing="no job has this tag; to cancel a job by its id: delay-queue delete ID",
        ),
        remote(
            "take",
            "remove and print jobs in a range of due times",
            TOPIC,
            *RANGE,
            COUNT,
            show=tables.jobs,
            nothing="no such job",
            give_back=asking.push_back,
        ),
        remote(
            "kick",
            "make buried or delayed jobs ready now",
            argument("ids", metavar="ID", nargs="*", help="the jobs; these, --topic or --tag"),
            option("--topic", "the first buried jobs of this topic"),
            option("--tag", "all buried jobs of this tag, with --topic those of the topic"),
            option("--state", "jobs of the topic or tag in this state: buried or delayed [buried]"),
            option("--count N", "how many of the topic [1]"),
            option("--body", "replaces the body of the job; - = read stdin", type=body),
            flag("--all", "all jobs now in this state; without --topic, in all topics"),
            ask=asking.kick,
        ),
        remote(
            "reschedule",
            "give jobs a new due time or priority",
            argument("ids", metavar="ID", nargs="*", help="the jobs; these or --tag"),
            option("--tag", "all jobs of this tag that are not reserved"),
            option("--topic", "only the tag's jobs in this topic"),
            DELAY,
            DUE,
            option(
                "--by LENGTH",
                "move each job's own due time; --by=-1h = an hour earlier",
                type=distance,
            ),
            option("--priority N", "the new priority [their own]"),
        ),
    ),
    "looking for jobs": (
        remote(
            "get",
            "show jobs with all their details",
            IDS,
            option("--timeout LENGTH", "wait until the job has ended; with one ID"),
            ask=asking.get,
            show=tables.found,
            nothing="no such job",
        ),
        remote(
            "peek",
            "show a topic's next jobs",
            TOPIC,
            COUNT,
            WATCH,
            ask=asking.peek,
            show=tables.jobs,
        ),
        remote(
            "list",
            "list jobs by topic, tag or state",
            OF_TOPIC,
            option("--tag", "jobs with this tag"),
            choice(
                "--state STATE",
                State,
                f"jobs in this state: {', '.join(State)}; required without topic and tag",
            ),
            *RANGE,
            LIMIT,
            WATCH,
            ask=asking.listed,
            show=tables.jobs,
        ),
        remote(
            "find",
            "find jobs by text in their id, body or message",
            option("--id TEXT", "a part of the id"),
            option("--text", "a part of the body, as pushed"),
            option("--message TEXT", "a part of the message of a failure"),
            option("--topic", "only in this topic"),
            option("--tag", "only with this tag"),
            option("--group", "only of this group"),
            choice("--state STATE", State, "only in this state"),
            *RANGE,
            LIMIT,
            ask=asking.find,
            show=tables.jobs,
            nothing="no such job",
        ),
        remote(
            "buried",
            "list dead letters by reason",
            OF_TOPIC,
            option("--reason", "only this reason"),
            option("--ids N", "most ids per reason [1]"),
            WATCH,
            show=tables.buried,
        ),
        remote(
            "note",
            "write a note on the dead letters of a reason, for everyone who looks at them",
            argument("reason", metavar="REASON", help="as `buried` shows it"),
            argument(
                "text", metavar="TEXT", nargs="?", help="at most 500 characters [remove the note]"
            ),
        ),
    ),
    "topics": (
        remote(
            "pause",
            "pause a topic's deliveries",
            TOPIC,
            option("--for LENGTH", "[until `resume`]", dest="seconds"),
        ),
        remote("resume", "resume a topic's deliveries", TOPIC),
        remote(
            "limit",
            "limit a topic's rate and concurrency, and what happens to its dead letters",
            TOPIC,
            option("--rate N", "deliveries a second, or none", type=or_none(number)),
            option("--burst N", "deliveries at once after a pause"),
            option("--concurrency N", "jobs reserved at once, or none", type=or_none(whole)),
            option(
                "--group-concurrency N",
                "jobs of a group reserved at once, or none",
                type=or_none(whole),
            ),
            option(
                "--group-order yes|no",
                "whether the jobs of a group go in strict order, one at a time",
                type=yes_no,
            ),
            option(
                "--buried-retain LENGTH",
                "how long buried jobs are kept; none = the server's setting",
                type=or_none(length),
            ),
            option("--buried-to TOPIC", "which topic gets a job for each buried one, or none"),
            option("--max-jobs N", "jobs that it may have, or none", type=or_none(whole)),
            choice(
                "--when-full",
                (*WhenFull, UNLIMITED),
                "what a push to a full topic does; none = it is refused",
            ),
            ask=asking.limit,
        ),
        remote(
            "purge",
            "delete a topic's jobs and keep no record of them",
            TOPIC,
            option(
                "--state", "only delayed, ready, reserved or buried ones, or kept results: ended"
            ),
        ),
    ),
    "subscribers": (
        remote(
            "subscribe",
            "call a URL with a topic's jobs",
            NAME,
            NEW_TOPIC,
            argument("webhook", metavar="URL", nargs="?", help="the URL that jobs are sent to"),
            option("--method", "POST, PUT, PATCH, DELETE or GET [POST]"),
            option(
                "--header",
                "a header of the calls, as 'NAME: VALUE'; may be repeated",
                dest="headers",
                action="append",
                type=header,
            ),
            option("--order N", "a topic's lowest order is called first [0]"),
            option("--timeout LENGTH", "how long a call may take [30s]"),
            RETRY,
            option("--concurrency N", "calls at once from each server [10]"),
            option(
                "--secret",
                "signs the calls; - = read it from stdin, so that it stays secret",
                type=secret,
            ),
            option("--expect TEXT", "what the answer must be; '*TEXT*' = hold"),
            choice(
                "--on-failure", OnFailure, "what happens to a job after the last failure [bury]"
            ),
            choice(
                "--payload",
                Payload,
                "what is sent: the job's body, or a JSON object with the results so far [body]",
            ),
            IF_NAMED,
            ask=asking.subscribe,
        ),
        remote("unsubscribe", "remove a subscriber", NAME),
        remote(
            "subscribers",
            "list subscribers in calling order",
            OF_TOPIC,
            flag("--calls", "include their recent calls"),
            MOST,
            WATCH,
            ask=asking.registered("subscribers"),
            show=tables.subscribers,
        ),
        remote("pause-subscriber", "pause a subscriber", NAME),
        remote("resume-subscriber", "resume a subscriber", NAME),
        remote(
            "try-subscriber",
            "call a webhook once with a made-up job",
            NAME,
            BODY,
            ask=at("/try-subscriber", LONGEST_TRIAL_S),
        ),
    ),
    "schedules": (
        remote(
            "schedule",
            "push jobs on a schedule",
            NAME,
            NEW_TOPIC,
            BODY,
            *TIMES,
            option("--ttr LENGTH", "how long a worker may take [60s]"),
            choice("--catch-up", CatchUp, "what to do about missed times [once]"),
            option("--group", "the group of its jobs"),
            flag("--paused", "keep it, and push nothing"),
            argument(
                "--resumed",
                dest="paused",
                action="store_const",
                const=False,
                help="no longer --paused",
            ),
            *CALL,
            IF_NAMED,
            ask=asking.schedule,
        ),
        remote("unschedule", "remove a schedule", NAME),
        remote(
            "schedules",
            "list schedules and their next run",
            OF_TOPIC,
            MOST,
            WATCH,
            ask=asking.registered("schedules"),
            show=tables.schedules,
        ),
        remote(
            "preview-schedule",
            "show the next ten runs of a schedule",
            *TIMES,
            show=tables.occurrences,
        ),
        remote("run-schedule", "run a schedule now", NAME),
    ),
}
