"""The verbs that ask a running server over HTTP, in one table."""

from typing import Final

from delayqueue.cli import asking, tables
from delayqueue.cli.arguments import (
    AFTER,
    BEFORE,
    BODY,
    COUNT,
    DELAY,
    DUE,
    END,
    ID,
    IDS,
    KICKED,
    LISTED,
    LOOKED_AT,
    LOOKS_S,
    MESSAGE,
    NAME,
    OF_TOPIC,
    POPPED,
    PUSHED,
    RECEIPT,
    SCHEDULED,
    START,
    SUBSCRIBED,
    TIMES,
    TOPIC,
    WATCH,
)
from delayqueue.cli.asking import at, one_or_many
from delayqueue.cli.request import remote
from delayqueue.cli.subcommand import argument
from delayqueue.cli.top import Top
from delayqueue.cli.words import at_once, distance, kept, length, moment, per_second, whole
from delayqueue.client.subscribers import LONGEST_TRIAL_S

REMOTE: Final = (
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
        *(*LOOKED_AT, WATCH),
        show=tables.topics,
    ),
    remote("push", "add a job", asking.push, *PUSHED),
    remote(
        "pop",
        "reserve ready jobs to work on",
        asking.pop,
        *POPPED,
        show=tables.found,
        nothing="no job is ready",
    ),
    remote(
        "finish", "finish jobs whose work is done", one_or_many("/finish"), IDS, RECEIPT, MESSAGE
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
        *(*LISTED, WATCH),
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
            "--limit", metavar="N", type=whole, help=f"most jobs to return [{asking.DEFAULT_COUNT}]"
        ),
        show=tables.jobs,
        nothing="no such job",
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
        "forecast",
        "count the jobs that fall due in each step",
        asking.forecast,
        OF_TOPIC,
        argument("--start", metavar="TIME", type=moment, help="start of the range [now]"),
        argument(
            "--end", metavar="TIME", type=moment, help="end of the range [a day after the start]"
        ),
        argument("--step", metavar="LENGTH", type=length, default=3600, help="of a step [1h]"),
        WATCH,
        show=tables.forecast,
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
    remote(
        "history",
        "show throughput, lateness and depth over time",
        at("/history"),
        OF_TOPIC,
        argument("--span", help="the last 3h, 2d or 30d [3h]"),
        show=tables.history,
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
            "--ttr", metavar="LENGTH", type=length, help="the new TTR, from now on [the job's own]"
        ),
    ),
    remote(
        "bury", "give up on a job and keep it as a dead letter", at("/bury"), ID, RECEIPT, MESSAGE
    ),
    remote("kick", "make buried or delayed jobs ready now", asking.kick, *KICKED),
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
    remote(
        "cancel",
        "cancel all jobs with a tag",
        at("/cancel"),
        argument("tag", metavar="TAG", help="the tag"),
        argument("--topic", help="only in this topic"),
        nothing="no job has this tag; to cancel a job by its id: delay-queue delete ID",
    ),
    remote(
        "pause",
        "pause a topic's deliveries",
        at("/pause"),
        TOPIC,
        argument("--for", dest="seconds", metavar="LENGTH", type=length, help="[until `resume`]"),
    ),
    remote(
        "limit",
        "limit a topic's rate and concurrency, and how long its dead letters are kept",
        asking.limit,
        TOPIC,
        argument("--rate", metavar="N", type=per_second, help="deliveries a second, or none"),
        argument("--burst", metavar="N", type=whole, help="deliveries at once after a pause"),
        argument("--concurrency", metavar="N", type=at_once, help="jobs reserved at once, or none"),
        argument(
            "--buried-retain",
            metavar="LENGTH",
            type=kept,
            help="how long buried jobs are kept; none = the server's setting",
        ),
    ),
    remote("resume", "resume a topic's deliveries", at("/resume"), TOPIC),
    remote(
        "purge",
        "drop a topic's jobs without a trace",
        at("/purge"),
        TOPIC,
        argument(
            "--state", help="only delayed, ready, reserved or buried ones, or kept results: ended"
        ),
    ),
    remote("subscribe", "call a URL with a topic's jobs", asking.subscribe, *SUBSCRIBED),
    remote("unsubscribe", "remove a subscriber", at("/unsubscribe"), NAME),
    remote(
        "subscribers",
        "list subscribers in calling order",
        at("/subscribers"),
        OF_TOPIC,
        argument("--calls", action="store_true", default=None, help="include their recent calls"),
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
    remote("schedule", "push jobs on a schedule", at("/schedule"), *SCHEDULED),
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
    remote("whoami", "show what the token may do", at("/whoami")),
)
