"""The queue at a glance: `delay-queue top`."""

import shutil
import sys
import time
from typing import Any, Final

from delayqueue.cli.tables import TOPIC_COLUMNS, Row, age, cell, fitting, local_time, topic_cells
from delayqueue.domain.job import LIVE_STATES

COUNTED: Final = ("pushed", "delivered", "finished")  # by each server since its start
SERVER_COLUMNS: Final = [
    *("server", "version", *(f"{name}/s" for name in COUNTED)),
    *("polls", "late", "p99"),
]
CALL_COLUMNS: Final = [
    "host",
    "calling",
    "limit",
    "ok/min",
    "failed",
    "put off",
    "took",
    "waiting",
    "since",
    "next",
]
TROUBLE_COLUMNS: Final = ["trouble", "name", "topic", "count", "last", "message"]
OUTBOX_COLUMNS: Final = ["outbox", "failed rows", "oldest", "seen", "newest reason"]
MIB: Final = 1024 * 1024


class Top:
    """Makes text of the answers of /stats, with the servers' rates since the answer before."""

    def __init__(self) -> None:
        self._servers: dict[str, Row] = {}
        self._rates: dict[str, list[str]] = {}

    def __call__(self, stats: Row) -> str:
        """What goes wrong, servers, then topics: those that need attention, with the reason, then the busiest."""
        most = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
        troubled = {one["topic"]["topic"]: one for one in stats["attention"]}
        topics = [[*topic_cells(one["topic"]), ", ".join(one["why"])] for one in troubled.values()]
        topics += [
            [*topic_cells(one), ""] for one in stats["busiest"] if one["topic"] not in troubled
        ]
        parts = [
            f"{local_time(time.time())}   {_store(stats['store'])}\n{_sums(stats)}",
            fitting(SERVER_COLUMNS, [self._server(one) for one in stats["servers"]], most),
            fitting([*TOPIC_COLUMNS, "attention"], topics, most) if topics else "no topics",
        ]
        if troubles := stats.get("troubles"):
            parts.insert(1, fitting(TROUBLE_COLUMNS, list(map(_trouble, troubles)), most))
        if calls := stats.get("calls"):
            parts.append(fitting(CALL_COLUMNS, list(map(_calls, calls)), most))
        if outboxes := stats.get("outboxes"):
            parts.append(fitting(OUTBOX_COLUMNS, list(map(_outbox, outboxes)), most))
        return "\n\n".join(parts)

    def _server(self, server: Row) -> list[str]:
        name = server["name"]
        former = self._servers.get(name)
        if former is None or server["started"] != former["started"]:
            self._rates[name] = ["-"] * len(COUNTED)
        elif server["seen"] > former["seen"]:
            took_s = server["seen"] - former["seen"]
            self._rates[name] = [
                f"{(server[each] - former[each]) / took_s:.0f}" for each in COUNTED
            ]
        self._servers[name] = server
        lateness = [_ms(server["lateness_p50"]), _ms(server["lateness_p99"])]
        return [
            *(cell("name", name), cell("version", server["version"])),
            *(*self._rates[name], str(server["waiting"]), *lateness),
        ]


def _calls(host: Row) -> list[str]:
    counts = ("calling", "limit", "succeeded", "failed", "put_off")
    since, next_try = host.get("waiting_since"), host.get("next_try")  # older servers tell neither
    return [
        cell("host", host["host"]),
        *(str(host[name]) for name in counts),
        _ms(host["took"]),
        str(host.get("waiting", "-")),
        age(since and max(0, time.time() - since)),
        age(next_try and max(0, next_try - time.time())),
    ]


def _trouble(trouble: Row) -> list[str]:
    names = [cell(name, trouble[name] or None) for name in ("kind", "name", "topic")]
    last = age(max(0, time.time() - trouble["at"])) + " ago"
    return [*names, str(trouble["count"]), last, cell("message", trouble["message"])]


def _outbox(outbox: Row) -> list[str]:
    ages = [age(outbox["oldest_age"]), age(max(0, time.time() - outbox["seen"])) + " ago"]
    name, reason = cell("name", outbox["name"]), cell("reason", outbox["reason"])
    return [name, str(outbox["failed"]), *ages, reason]


def _store(store: Row) -> str:
    limit = f" of {store['memory_limit'] / MIB:.0f}" if store["memory_limit"] else ""
    said = [*store.get("alarms", ()), *store["warnings"]]
    warnings = "".join(f"\n{cell('warning', each)}" for each in said)
    return f"{cell('version', store['version'])}, {store['memory'] / MIB:.1f}{limit} MiB{warnings}"


def _sums(stats: Row) -> str:
    counts = [f"{name} {stats[name]}" for name in ("topics", *LIVE_STATES)]
    if stats.get("called"):
        counts.append(f"calls due {stats['called']}")
    return "   ".join([*counts, f"oldest ready {age(stats['oldest_ready_age'])}"])


def _ms(seconds: Any) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds is not None and seconds < 10 else age(seconds)
