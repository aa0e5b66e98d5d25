"""The server's answers as text for people: tables, lines, local time."""

import math
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from unicodedata import east_asian_width

from delayqueue.domain.job import LIVE_STATES
from delayqueue.log import one_line

GAP: Final = "  "
# in a table; `get` shows all of them
MOST_CHARS: Final = {"body": 40, "message": 60, "reason": 60, "topics": 24, "ids": 60, "note": 40}
BAR_CHARS: Final = 40
LEAST_COLUMNS: Final = 16  # of a name, whatever else is in its row
UNITS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
NUMBER: Final = re.compile(r"-|\d+(\.\d+)?s?|\d+[dhms]( \d+[hms])?", re.ASCII)
TIMES: Final = {"first", "last", "due", "created", "started", "ended", "deadline", "next"}
# `due` says it better than the first; the others follow as tables
HIDDEN: Final = {"delay", "attempts", "results"}
HISTORY: Final = {
    "attempts": ["attempt", "started", "ended", "message"],
    "results": ["subscriber", "status", "attempts", "started", "ended", "message"],
}
TOPIC_COLUMNS: Final = ["topic", *LIVE_STATES, "oldest", "paused"]

INDENT: Final = "    "
MARK: Final = ("kind", "lasted", "server", "by", "what")

Row = Mapping[str, Any]


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a head. Numbers are aligned to the right."""
    lines = [[column.upper() for column in columns], *rows]
    widths = [max(map(_width, cells)) for cells in zip(*lines, strict=True)]
    right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(columns))]
    padded = (GAP.join(map(_padded, line, widths, right)) for line in lines)
    return "\n".join(map(str.rstrip, padded))


def fitting(columns: Sequence[str], rows: Sequence[Sequence[str]], most: int) -> str:
    """A table that is at most this wide, if it can be so by shorter names in its first column."""
    shown = table(columns, rows)
    too_wide = max(map(_width, shown.splitlines())) - most
    if too_wide <= 0:
        return shown
    names = max(LEAST_COLUMNS, max(_width(name) for name, *_ in rows) - too_wide)
    return table(columns, [[_without_middle(name, names), *rest] for name, *rest in rows])


def facts(data: Row) -> str:
    """An object: a line for each member, its name first; for a terminal, the further lines of a text stand below."""
    shown = {name: lines(name, value) for name, value in data.items() if name not in HIDDEN}
    width = max(map(len, shown)) + 1
    return "\n".join(
        "\n".join([f"{name + ':':<{width}} {first}".rstrip(), *_indented(more)])
        for name, (first, *more) in shown.items()
    )


def lines(name: str, value: Any) -> list[str]:
    """The lines of a value: for a terminal as many as it has, for programs one."""
    if not (isinstance(value, str) and sys.stdout.isatty()):
        return [cell(name, value)]
    return [one_line(line) for line in value.split("\n")]


def _indented(more: Sequence[str]) -> list[str]:
    return [f"{INDENT}{line}".rstrip() for line in more]


def cell(name: str, value: Any) -> str:
    """A value on one line, without anything that moves a terminal's cursor."""
    if value is None:
        return "-"
    if name in TIMES:
        return local_time(value)
    if name in OBJECTS:
        return OBJECTS[name](value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return one_line(", ".join(map(str, value))) or "-"
    return one_line(str(value))


def _progress(told: Row) -> str:
    """40 %, page 4 of 10"""
    percent = "" if told["percent"] is None else f"{told['percent']:g} %"
    return one_line(", ".join(part for part in (percent, told["message"]) if part)) or "-"


def _held_by(other: Row) -> str:
    """order-1001, delayed until 2026-01-31 12:00:00"""
    until = "" if other["until"] is None else f" until {local_time(other['until'])}"
    return f"{one_line(other['id'])}, {other['state']}{until}"


def _call(told: Row) -> str:
    """PUT https://example.com/, timeout 30s, headers X-Key X-Shop, expect *ok*, give up"""
    said = [f"{told['method']} {told['url']}", f"timeout {told['timeout']:g}s"]
    said += [f"headers {' '.join(told['headers'])}"] if told["headers"] else []
    said += [f"expect {told['expect']}"] if told["expect"] else []
    said += ["give up"] if told["give_up"] else []
    return one_line(", ".join(said))


# how members that are objects are written
OBJECTS: Final[Mapping[str, Callable[[Row], str]]] = {
    "progress": _progress,
    "held_by": _held_by,
    "call": _call,
}


def local_time(unix_s: float) -> str:
    """2026-01-31 12:00:00, in the user's time zone."""
    return datetime.fromtimestamp(unix_s, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def jobs(found: Sequence[Row]) -> str:
    """Jobs, one per line."""
    if not found:
        return "no jobs"
    columns = ["id", "topic", "state", "due", "attempt", "receipt", "worker", "progress"]
    columns += ["group", "held_by", "tags", "body"]
    columns = [column for column in columns if any(column in job for job in found)]
    if any(job.get("message") for job in found):
        columns.append("message")
    return table(columns, [[_short(name, job.get(name)) for name in columns] for job in found])


def job(found: Row) -> str:
    """All about one job."""
    tables = [
        _history_of(columns, found[member])
        for member, columns in HISTORY.items()
        if found.get(member)
    ]
    return "\n\n".join([facts(found), *tables])


def _history_of(columns: Sequence[str], entries: Sequence[Row]) -> str:
    """A row for each entry, with further lines of its message below it."""
    said = [lines("message", entry["message"]) for entry in entries]
    rows = [
        [*(cell(name, entry[name]) for name in columns if name != "message"), first]
        for entry, (first, *_) in zip(entries, said, strict=True)
    ]
    head, *shown = table(columns, rows).splitlines()
    each = [[row, *_indented(more)] for row, (_, *more) in zip(shown, said, strict=True)]
    return "\n".join([head, *(line for lines_of in each for line in lines_of)])


def found(data: Row | Sequence[Row | None]) -> str:
    """A job, or several of which some may not exist."""
    return job(data) if isinstance(data, Mapping) else jobs([one for one in data if one])


def workers(found: Sequence[Row]) -> str:
    """Workers, one per line, with the job that each has had for longest."""
    if not found:
        return "no worker has given its name"
    now_s = time.time()
    columns = ["worker", "version", "topics", "jobs", "longest", "finished", "failed", "seen"]
    rows = [
        [
            *(cell(name, one[name]) for name in ("name", "version", "topics")),
            f"{one['in_hand']}/{one['concurrency'] or '-'}",
            _longest(one["jobs"], now_s),
            *(str(one[name]) for name in ("finished", "failed")),
            _sign_of(one, now_s),
        ]
        for one in found
    ]
    return table(columns, rows)


def _longest(jobs_in_hand: Sequence[Row], now_s: float) -> str:
    if not jobs_in_hand:
        return "-"
    job = jobs_in_hand[0]
    return f"{cell('id', job['id'])} of {cell('topic', job['topic'])} {age(max(0, now_s - job['since']))}"


def _sign_of(worker: Row, now_s: float) -> str:
    """The worker's last sign of life, and what that means for its jobs."""
    seen = f"{age(max(0, now_s - worker['seen']))} ago"
    if not worker["gone"]:
        return seen
    hold = f", holds its jobs until {local_time(worker['until'])}" if worker["until"] else ""
    return f"GONE {seen}{hold}"


def stats(data: Row) -> str:
    """The sums over all topics."""
    return facts({**data, "oldest_ready_age": age(data["oldest_ready_age"])})


def topics(found: Sequence[Row]) -> str:
    """Topics with their counts."""
    if not found:
        return "no topics"
    within = [f"{seconds}s" for seconds in found[0].get("due_soon", ())]
    rows = [[*topic_cells(topic), *map(str, topic.get("due_soon", {}).values())] for topic in found]
    return table([*TOPIC_COLUMNS, *within], rows)


def topic_cells(topic: Row) -> list[str]:
    """A topic as a row under TOPIC_COLUMNS."""
    return [
        cell("topic", topic["topic"]),
        *(str(topic[name]) for name in LIVE_STATES),
        age(topic["oldest_ready_age"]),
        paused(topic["paused"]),
    ]


def subscribers(found: Sequence[Row]) -> str:
    """Subscribers, in calling order; with their calls within a day, if asked for."""
    counts = ("succeeded", "failed", "took")
    rows = [
        {
            **one,
            "calls": one["url"] or one["handler"],
            "paused": one["paused"] is not None,
            **{name: one["calls"][name] for name in counts if "calls" in one},
        }
        for one in found
    ]
    columns = ["name", "topic", "order", "calls", "signed", "declared", "paused"]
    columns += [name for name in counts if rows and name in rows[0]]
    return _listing("subscribers", columns, rows)


def occurrences(found: Sequence[Row]) -> str:
    """The times of a schedule, in its time zone and in the user's."""
    rows = [{"local": one["local"], "next": one["at"]} for one in found]
    return _listing("times", ["local", "next"], rows)


def schedules(found: Sequence[Row]) -> str:
    """Schedules and their next occurrences."""
    rows = [{**one, "at": _at(one)} for one in found]
    return _listing("schedules", ["name", "topic", "at", "next", "declared", "paused"], rows)


def age(seconds: float | None) -> str:
    """How long a job has been ready, in its two largest units: 15m 38s."""
    if seconds is None:
        return "-"
    if seconds < UNITS["m"]:
        return f"{seconds:.1f}s"
    rest, shown = round(seconds), []
    for unit, size in UNITS.items():
        count, rest = divmod(rest, size)
        shown += [f"{count}{unit}"] if count else []
    return " ".join(shown[:2])


def paused(value: float | bool) -> str:
    """Whether a topic is paused, and until when."""
    return cell("paused", value) if isinstance(value, bool) else f"until {local_time(value)}"


def forecast(data: Row) -> str:
    """How many jobs fall due in each step, with a bar for each."""
    most = max(data["counts"], default=0) or 1
    rows = [
        [
            local_time(data["start"] + place * data["step"]),
            str(count),
            "#" * math.ceil(count * BAR_CHARS / most),
        ]
        for place, count in enumerate(data["counts"])
    ]
    return table(["from", "jobs", ""], rows)


def buried(data: Row) -> str:
    """Dead letters by reason."""
    columns = ["count", "reason", "first", "last", "topics", "ids"]
    rows = [
        group
        | {"topics": [f"{topic} {count}" for topic, count in group["topics"].items()]}
        | {"note": group["note"]["text"] if "note" in group else ""}
        for group in data["groups"]
    ]
    if any(row["note"] for row in rows):
        columns.append("note")
    shown = _listing("dead letters", columns, rows)
    return f"{shown}\nThere are more than these." if data["cursor"] else shown


def history(data: Row) -> str:
    """A line for each step with known figures, then the incidents."""
    columns = [name for name in data if isinstance(data[name], list) and name != "marks"]
    known = [place for place, pushed in enumerate(data["pushed"]) if pushed is not None]
    rows = [
        [
            local_time(data["start"] + place * data["step"]),
            *(cell(name, data[name][place]) for name in columns),
        ]
        for place in known
    ]
    shown = table(["from", *(name.replace("_", " ") for name in columns)], rows)
    marks = [
        [local_time(one["at"]), *(cell(name, one.get(name, "")) for name in MARK)]
        for one in data["marks"]
    ]
    return f"{shown}\n\n{table(['at', *MARK], marks)}" if marks else shown


def outcomes(results: Sequence[Row]) -> str:
    """The outcome of each id."""
    rows = [
        [cell("id", one["id"]), "ok" if one["code"] == 0 else str(one["code"])] for one in results
    ]
    return table(["id", "code"], rows)


def _listing(what: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    if not rows:
        return f"no {what}"
    return table(columns, [[_short(name, row[name]) for name in columns] for row in rows])


def _at(planned: Row) -> str:
    if planned["cron"]:
        return f"{planned['cron']} {planned['tz']}"
    return f"every {planned['every']:.10g}s"  # 900.0 is 900


def _short(name: str, value: Any) -> str:
    text, most = cell(name, value), MOST_CHARS.get(name)
    return text[: most - 1] + "…" if most and len(text) > most else text


def _is_number(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None


def _width(text: str) -> int:
    """Columns in a terminal: Chinese characters take two."""
    return sum(2 if east_asian_width(char) in {"W", "F"} else 1 for char in text)


def clipped(line: str, columns: int) -> str:
    """The part of a line that fits in this many columns of a terminal."""
    while _width(line) > columns:
        line = line[: columns - _width(line)]
    return line


def _without_middle(text: str, columns: int) -> str:
    """The text without its middle, at most this wide: topics differ at the start or the end of their names."""
    if _width(text) <= columns:
        return text
    end = (columns - 1) // 2
    return f"{clipped(text, columns - 1 - end)}…{clipped(text[::-1], end)[::-1]}"


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks
