"""Fills stores with the server of an earlier commit, and saves their keys and its answers.

`python -m tests.upgrade.fill` writes filled/*.json again; that is only needed for another commit, or for more states.
Whatever must be over when a test reads it is in topics that begin with `soon`, and takes less than a minute.
"""

import argparse
import asyncio
import json
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from redis.asyncio import Redis

from tests.api_client import Api, open_api
from tests.delivery.receiver import SECRET, Answer, Receiver, receiving
from tests.earlier import COMMIT, let_run, program_of
from tests.processes import LOOPBACK, Processes, QueueServer
from tests.store.contents import Snapshot, snapshot
from tests.upgrade.filled import LAYOUTS, Layout, listed, said
from tests.waiting import until_async

DATABASE: Final = 1
DAY_S: Final = 86_400
YEAR_S: Final = 365 * DAY_S
TAG: Final = "用户:7"
TRACE: Final = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
BODY: Final = '排队 🐘 "\\ \0\x7f\r\n {"a":[1]} \x85'
LIMIT: Final = 4  # reserved at once
WAITING: Final = 10

# delayed, with each of the options
DELAYED: Final[list[dict[str, Any]]] = [
    {"topic": "mail", "id": "mail/plain", "delay": 9 * DAY_S, "body": "plain"},
    {"topic": "mail", "id": "mail/body", "delay": 2 * DAY_S, "body": BODY},
    {"topic": "mail", "id": "订单 7\n", "delay": 3 * DAY_S, "tags": [TAG, "order"]},
    {"topic": "mail", "id": "mail/retry", "delay": DAY_S, "retry": {"preset": "wechat"}},
    {"topic": "mail", "id": "mail/expire", "delay": 5 * DAY_S, "expire": 60},
    {"topic": "mail", "id": "mail/retain", "delay": 5 * DAY_S, "retain": YEAR_S},
    {
        "topic": "mail",
        "id": "mail/all",
        "delay": 6 * DAY_S,
        "ttr": DAY_S,
        "tags": ["order", "a"],
        "retry": {"delays": [1, "2m", "1.5h"]},
        "retain": YEAR_S,
        "expire": DAY_S,
        "traceparent": TRACE,
        "body": BODY,
    },
]
HELD: Final = ("finish", "release", "touch", "bury", "delete", "keep")
SOON_S: Final = 30


class Filling:
    """One store, and the receipts of what is reserved in it."""

    def __init__(self, api: Api, receiver: Receiver) -> None:
        self.api = api
        self.receiver = receiver
        self.receipts: dict[str, str] = {}
        self.ids: list[str] = []

    async def fill(self) -> None:
        await self.push(*DELAYED)
        await self._ready()
        await self._reserved()
        await self._tagged()
        await self._tried_again()
        await self._buried()
        await self._ended()
        await self._topics()
        await self._subscribers()
        await self._soon()
        for name, when in (("soon", {"every": "30s"}), ("daily", {"cron": "30 9 * * *"})):
            what = {"topic": f"soon-{name}", "tz": "Asia/Shanghai", "body": BODY, "ttr": 7}
            (await self.api.call("/schedule", {"name": name} | when | what)).ok()

    async def push(self, *jobs: dict[str, Any]) -> None:
        for result in (await self.api.push_all(jobs)).ok():
            assert result["code"] == 0, result
        self.ids += [job["id"] for job in jobs if job["id"] not in self.ids]

    async def pop(self, topic: str, count: int) -> list[str]:
        """Reserve this many. Returns the ids."""
        popped: list[str] = []
        while len(popped) < count:
            jobs = (await self.api.pop(topic, count=count - len(popped))).ok()
            assert jobs, f"{topic}: {popped}"
            self.receipts |= {job["id"]: job["receipt"] for job in jobs}
            popped += [job["id"] for job in jobs]
        return popped

    async def end(self, verb: str, job_id: str, **options: object) -> None:
        receipt = {"receipt": self.receipts.pop(job_id)} if job_id in self.receipts else {}
        (await self.api.call(verb, {"id": job_id} | receipt | options)).ok()

    async def _ready(self) -> None:
        """The list also has ids whose jobs are gone or elsewhere."""
        ready = [{"topic": "ready", "id": f"ready/{n}", "body": f"第{n}"} for n in range(4)]
        gone = [{"topic": "ready", "id": f"gone/{n}"} for n in range(3)]
        await self.push(*ready, *gone)
        await self.end("/delete", "gone/0")
        await self.end("/reschedule", "gone/1", delay=YEAR_S)
        await self.push({"topic": "mail", "id": "gone/2", "delay": YEAR_S})

    async def _reserved(self) -> None:
        jobs = [
            {"topic": "held", "id": f"held/{verb}", "ttr": DAY_S, "retain": YEAR_S} for verb in HELD
        ]
        await self.push(*jobs)
        await self.pop("held", len(jobs))

    async def _tagged(self) -> None:
        tagged = {"topic": "tagged", "tags": ["a", TAG], "retain": YEAR_S, "ttr": DAY_S}
        for place in ("buried", "reserved", "ready"):
            await self.push(tagged | {"id": f"tagged/{place}"})
            if place != "ready":
                await self.pop("tagged", 1)
        await self.end("/bury", "tagged/buried")

    async def _tried_again(self) -> None:
        retry = {"delays": ["0s", "7h", "8h"]}
        await self.push(
            {"topic": "again", "id": "again/held", "ttr": DAY_S},
            {"topic": "again", "id": "again/waits", "ttr": DAY_S, "retry": retry},
        )
        for message in ("the bank is closed", "银行已关门"):
            await self.pop("again", 2)
            await self.end("/release", "again/held", message=message)
            await self.end("/release", "again/waits", message=message)
        await self.pop("again", 1)

    async def _buried(self) -> None:
        await self.push({"topic": "buried", "id": "buried/unseen"})
        await self.end("/bury", "buried/unseen", message="不要了")
        await self.push(
            {"topic": "buried", "id": "buried/by-worker", "body": BODY},
            {"topic": "buried", "id": "buried/by-schedule", "retry": {"delays": ["0s"]}},
        )
        await self.pop("buried", 2)
        await self.end("/bury", "buried/by-worker", message="no such account")
        await self.end("/release", "buried/by-schedule", message="first")
        await self.pop("buried", 1)
        await self.end("/release", "buried/by-schedule", message="last")

    async def _ended(self) -> None:
        kept = {"topic": "ended", "retain": YEAR_S, "body": BODY}
        for state in ("finished", "cancelled"):
            await self.push(kept | {"id": f"ended/{state}", "tags": [state]})
            await self.pop("ended", 1)
            await self.end("/release", f"ended/{state}", message="not yet")
            await self.pop("ended", 1)
            if state == "finished":
                await self.end("/finish", f"ended/{state}", message="完成")
            else:
                (await self.api.call("/cancel", {"tag": state})).ok()
                del self.receipts[f"ended/{state}"]
        await self.push(kept | {"id": "ended/expired", "expire": 0.01, "delay": 0.01})
        await self._until("ended/expired", "expired")
        await self.push({"topic": "ended", "id": "ended/without-a-trace"})
        await self.end("/finish", "ended/without-a-trace")

    async def _topics(self) -> None:
        (await self.api.call("/pause", {"topic": "paused"})).ok()
        (await self.api.call("/pause", {"topic": "paused-for-hours", "seconds": 5 * 3600})).ok()
        (await self.api.call("/limit", {"topic": "limited", "concurrency": LIMIT})).ok()
        (await self.api.call("/limit", {"topic": "slow", "rate": 0.001, "burst": 4})).ok()
        (await self.api.call("/pause", {"topic": "空"})).ok()
        await self.push(
            {"topic": "paused", "id": "paused/1"},
            {"topic": "paused-for-hours", "id": "paused/2"},
            {"topic": "slow", "id": "slow/1", "ttr": DAY_S},
            {"topic": "slow", "id": "slow/2", "ttr": DAY_S},
            *({"topic": "limited", "id": f"limited/{n}", "ttr": DAY_S} for n in range(WAITING)),
        )
        await self.pop("limited", LIMIT)
        await self.pop("slow", 1)

    async def _subscribers(self) -> None:
        for order, name in enumerate(("first", "second")):
            url = self.receiver.says(name, *[Answer(200, "收到"), Answer(500, "no")][order:])
            wanted = {"topic": "paid", "order": order, "retry": {"delays": ["4h", "5h"]}}
            more = {"concurrency": 3, "timeout": 7, "secret": SECRET} if order else {}
            (await self.api.call("/subscribe", {"name": name, "url": url} | wanted | more)).ok()
        await self.push({"topic": "paid", "id": "paid/half", "retain": YEAR_S, "body": BODY})

        async def is_half_done() -> bool:
            job = (await self.api.get("paid/half")).ok()
            return job["state"] == "delayed" and len(job["results"]) == 2

        await until_async(is_half_done)

    async def _soon(self) -> None:
        """Push what will be over soon."""
        retry: dict[str, Any] = {"ttr": SOON_S, "retry": {"delays": ["0s", "7h"]}}
        expire = {"expire": SOON_S, "retain": YEAR_S}
        await self.push(
            {"topic": "soon-due", "id": "soon/due", "delay": SOON_S, "body": BODY},
            {"topic": "soon-expired", "id": "soon/expired", **expire},
            {"topic": "soon-expired", "id": "soon/expired-early", "delay": 1, **expire},
            {"topic": "soon-dropped", "id": "soon/dropped", "retain": SOON_S},
            {"topic": "soon-ready", "id": "soon/ready", "ttr": SOON_S},
            {"topic": "soon-delayed", "id": "soon/delayed", **retry},
            {"topic": "soon-buried", "id": "soon/buried", **retry | {"retry": {"delays": ["0s"]}}},
            {"topic": "soon-resumed", "id": "soon/resumed"},
        )
        (await self.api.call("/pause", {"topic": "soon-resumed", "seconds": SOON_S})).ok()
        await self.end("/finish", "soon/dropped")
        for topic in ("soon-delayed", "soon-buried"):
            [job_id] = await self.pop(topic, 1)
            await self.end("/release", job_id, message="first")
        for topic in ("soon-ready", "soon-delayed", "soon-buried"):
            await self.pop(topic, 1)

    async def _until(self, job_id: str, state: str) -> None:
        async def is_so() -> bool:
            return bool((await self.api.get(job_id)).ok()["state"] == state)

        await until_async(is_so)

    async def answers(self) -> dict[str, Any]:
        """The answers that a test compares."""
        topics = (await self.api.call("/topics", {})).ok()
        for topic in topics:
            del topic["oldest_ready_age"]
        lists = {topic["topic"]: await listed(self.api, topic["topic"]) for topic in topics}
        return {
            "/get": await said(self.api, self.ids),
            "/list": lists,
            "/topics": topics,
            "/subscribers": (await self.api.call("/subscribers", {})).ok(),
            "/schedules": (await self.api.call("/schedules", {})).ok(),
        }


async def filled(layout: Layout, program: Path, processes: Processes) -> dict[str, Any]:
    """What is saved of a store with this layout."""
    store = processes.redis()
    settings = store.settings(DATABASE) | layout.settings()
    settings |= {"webhook_allow": "127.0.0.1/32", "language": "en"}
    server = let_run(QueueServer("server", processes.home("server"), settings), program)
    processes.started(server)
    async with (
        receiving() as receiver,
        open_api(server.url) as api,
        Redis(host=LOOPBACK, port=store.port, db=DATABASE, protocol=2) as redis,
    ):
        filling = Filling(api, receiver)
        await filling.fill()
        answers = await filling.answers()
        taken = await snapshot(redis)
        assert answers == await filling.answers(), "it moved meanwhile: run this again"
        return {
            "filled_ms": taken.now_ms,
            "receiver_port": receiver.port,
            "receipts": filling.receipts,
            "answers": answers,
            "keys": _keys(taken),
        }


def _keys(taken: Snapshot) -> dict[str, tuple[str, Any]]:
    return {
        _text(key): _typed(value)
        for key, value in sorted(taken.values.items())
        if not key.endswith(b":servers")
    }


def _typed(value: Any) -> tuple[str, Any]:
    if isinstance(value, dict):
        kind = "zset" if isinstance(next(iter(value.values())), float) else "hash"
        return kind, {
            _text(name): int(entry) if kind == "zset" else _text(entry)
            for name, entry in sorted(value.items())
        }
    kind = "list" if isinstance(value, list) else "set"
    return kind, [_text(entry) for entry in (value if kind == "list" else sorted(value))]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.upgrade.fill", description=__doc__)
    parser.add_argument("--commit", default=COMMIT)
    commit = parser.parse_args().commit
    with tempfile.TemporaryDirectory() as home, closing(Processes(Path(home))) as processes:
        program = program_of(commit, Path(home) / "program")
        for layout in LAYOUTS:
            saved = {"commit": commit} | asyncio.run(filled(layout, program, processes))
            layout.path.parent.mkdir(exist_ok=True)
            layout.path.write_text(_shown(saved), encoding="ascii")


def _shown(saved: dict[str, Any]) -> str:
    """A line for each key and each answer."""
    lines = []
    for name, value in saved.items():
        text = _line(value)
        if name in ("keys", "answers"):
            entries = [f"  {json.dumps(key)}: {_line(each)}" for key, each in value.items()]
            text = "{\n" + ",\n".join(entries) + "\n }"
        lines.append(f' "{name}": {text}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    main()
