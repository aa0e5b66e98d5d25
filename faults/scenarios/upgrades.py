"""Row 33: servers of an earlier version are replaced one after the other, under load, and put back."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from faults.bed import BACK_S, DATABASE, Bed, CannotRun, Figures, assert_fsck_finds_nothing, restart
from faults.load import STALE, Shape
from tests.api_client import Api, Json
from tests.earlier import LIVE_MOVES, NoSuchCommit, let_run, program_of
from tests.processes import LOOPBACK, QueueServer, StoreServer, free_port
from tests.waiting import until_async

SERVERS: Final = 2
TICKS: Final = "ticks"  # a topic that a schedule fills
WOKEN_S: Final = 5.0  # a poll is told of a job pushed to the other server; machines are busy
AGAIN_S: Final = 0.3
SHAPE: Final = Shape(producers=2, consumers=4, pause_s=0.1)


async def rolling_upgrade(bed: Bed, *, rounds: int, plans: Sequence[tuple[str, int]]) -> Figures:
    """Each plan, a scheduler and a number of buckets: all servers are replaced by those of today and put back."""
    try:
        program = program_of(LIVE_MOVES, bed.home / "program")
    except NoSuchCommit as reason:
        raise CannotRun(str(reason)) from None
    figures: Figures = {"from": LIVE_MOVES}
    for scheduler, buckets in plans:
        store = bed.store()
        settings = {"scheduler": scheduler, "bucket_size": buckets}
        fleet = Fleet(bed, store, settings, program)
        found = await _rolled(bed, fleet, rounds)
        fleet.close()
        assert_fsck_finds_nothing(store.settings(DATABASE) | settings)
        store.close()
        figures |= {name: figures.get(name, 0) + value for name, value in found.items()}
    return figures


class Fleet:
    """Servers on one store, each with today's program or the earlier one, at fixed addresses."""

    def __init__(self, bed: Bed, store: StoreServer, settings: Json, program: Path) -> None:
        self._bed = bed
        self._store = store
        self._settings = settings
        self._program = program
        self._addresses = [f"{LOOPBACK}:{free_port()}" for _ in range(SERVERS)]
        self.servers = [self._made(place, of_today=False) for place in range(SERVERS)]

    def _made(self, place: int, *, of_today: bool) -> QueueServer:
        server = self._bed.new_server(
            self._store, bind_address=self._addresses[place], **self._settings
        )
        return server if of_today else let_run(server, self._program)

    async def start(self) -> None:
        await asyncio.gather(*map(restart, self.servers))

    async def replace(self, place: int, *, of_today: bool) -> None:
        """Stop a server and start the other program in its place."""
        await asyncio.to_thread(_stop, self.servers[place])
        self.servers[place] = self._made(place, of_today=of_today)
        await restart(self.servers[place])

    def close(self) -> None:
        for server in self.servers:
            _stop(server)


def _stop(server: QueueServer) -> None:
    assert server.stop() == 0, server.log_tail()
    log = server.logged()
    assert "Traceback" not in log, log


async def _rolled(bed: Bed, fleet: Fleet, rounds: int) -> Figures:
    await fleet.start()
    async with (
        bed.api(fleet.servers[0]) as one,
        bed.api(fleet.servers[1]) as other,
        bed.load(*fleet.servers, shape=SHAPE) as load,
    ):
        every = {"name": TICKS, "topic": TICKS, "every": "1s", "catch_up": "all"}
        (await one.call("/schedule", every)).ok()
        replaced = 0
        for of_today in [True, False] * rounds:
            for place in range(SERVERS):
                await load.until_finished(50)
                load.history.fault(f"server {place} becomes {'new' if of_today else 'old'}")
                await fleet.replace(place, of_today=of_today)
                replaced += 1
                if place == 0:  # there is one of each
                    await _work_together(one, other, f"{load.topic}-{replaced}")
                    await _work_together(other, one, f"{load.topic}-{replaced}-back")
                    await until_async(lambda: _know_each_other(one, other), within_s=BACK_S)
        (await one.call("/unschedule", {"name": TICKS})).ok()
        verdict = await load.finish()
        ticks = await _count_ticks(one)
    verdict.check()
    return verdict.figures() | {"replaced": replaced, "occurrences": ticks}


async def _work_together(one: Api, other: Api, topic: str) -> None:
    """A job goes through both servers: each knows what the other one has done."""
    poll = asyncio.create_task(other.pop(topic, timeout=WOKEN_S))
    await asyncio.sleep(0.1)  # the poll is waiting, so it must be told of the job
    retry = {"delays": [AGAIN_S, 3600]}
    (await one.push(topic=topic, id=topic, body="排队", tags=[topic], retry=retry, retain=60)).ok()
    popped = (await poll).ok()
    assert popped, "nobody told the server of the job"
    (await one.call("/release", _held(popped) | {"message": "no"})).ok()
    again = (await one.pop(topic, timeout=WOKEN_S)).ok()
    assert (again["id"], again["attempt"]) == (topic, 2)
    assert (await other.finish(topic, receipt=popped["receipt"])).code == STALE
    (await other.call("/touch", _held(again))).ok()
    (await other.call("/bury", _held(again) | {"message": "given up"})).ok()
    assert (await one.call("/kick", {"id": topic})).ok() == {"count": 1}
    last = (await other.pop(topic, timeout=WOKEN_S)).ok()
    (await one.finish(topic, receipt=last["receipt"], message="done")).ok()
    told = [(await api.get(topic)).ok() for api in (one, other)]
    known = told[0].keys() & told[1].keys()  # the new one has more members
    assert len(known) == min(map(len, told))
    assert all(told[0][name] == told[1][name] for name in known), told
    (await one.call("/limit", {"topic": topic, "concurrency": 8})).ok()
    (await other.call("/pause", {"topic": topic})).ok()
    [found] = (await one.call("/topics", {"topics": [topic]})).ok()
    assert (found["paused"], found["limit"]["concurrency"]) == (True, 8)
    (await one.call("/resume", {"topic": topic})).ok()
    (await other.call("/limit", {"topic": topic, "concurrency": None})).ok()


def _held(job: Json) -> Json:
    return {"id": job["id"], "receipt": job["receipt"]}


async def _know_each_other(one: Api, other: Api) -> bool:
    names = [
        {server["name"] for server in (await api.call("/stats", {})).ok()["servers"]}
        for api in (one, other)
    ]
    return names[0] == names[1] and len(names[0]) >= SERVERS


async def _count_ticks(api: Api) -> int:
    """Each second has exactly one job."""
    jobs = (await api.call("/take", {"topic": TICKS, "start": 0, "count": 1000})).ok()
    seconds = sorted(round(job["due"]) for job in jobs)
    assert seconds == [*range(seconds[0], seconds[0] + len(seconds))], seconds
    return len(seconds)
