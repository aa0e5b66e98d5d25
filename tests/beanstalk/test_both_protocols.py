"""A job is the same job over HTTP and over beanstalkd's protocol."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Final, Self, cast
from unittest.mock import Mock

import pytest

from delayqueue.beanstalk.answers import Answer, Pending
from delayqueue.beanstalk.ids import Ids, Numbers
from delayqueue.beanstalk.putting import put
from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.beanstalk.tube_access import TubeAccess
from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import Job
from delayqueue.engine.queue import DelayQueue
from delayqueue.errors import Code
from delayqueue.store.types import Pushed
from tests.api_client import Api, open_api
from tests.processes import Processes, StoreServer
from tests.waiting import until_async

from .conftest import at_home, opened
from .wire import Wire


async def test_a_job_that_is_put_is_popped_and_finished_over_http(
    api: Api, wire: Wire, tube: str
) -> None:
    number = await wire.put(b"hello", 5)
    job = (await api.pop(tube)).ok()
    assert (job["id"], job["body"], job["attempt"]) == (str(number), "hello", 1)
    assert await wire.ask(b"delete %d" % number) == b"NOT_FOUND\r\n"
    (await api.finish(job["id"], receipt=job["receipt"])).ok()
    assert await wire.ask(b"peek %d" % number) == b"NOT_FOUND\r\n"


async def test_a_put_into_a_full_tube_is_answered_with_out_of_memory(
    api: Api, wire: Wire, tube: str
) -> None:
    (await api.call("/limit", {"topic": tube, "max_jobs": 1})).ok()
    number = await wire.put(b"hello")
    for _ in range(2):
        assert await wire.ask(b"put 0 0 60 5\r\nhello") == b"OUT_OF_MEMORY\r\n"
    assert await wire.ask(b"delete %d" % number) == b"DELETED\r\n"
    await wire.put(b"hello")


async def test_a_job_that_is_pushed_over_http_is_reserved_by_a_number_of_its_own(
    api: Api, wire: Wire, tube: str
) -> None:
    (await api.push(topic=tube, id=f"{tube}-order", body="héllo", retain=60)).ok()
    (await api.push(topic=tube, id=f"{tube}-late", delay=1000)).ok()
    number, body = await wire.reserve()
    assert body == "héllo".encode()
    stats = await wire.stats(b"stats-job %d" % number)
    assert (stats["id"], stats["tube"], stats["state"]) == (str(number), tube, "reserved")
    peeked = await wire.ask(b"peek-delayed")
    late = int(peeked.split()[1])
    assert late != number
    assert await wire.ask(b"kick-job %d" % late) == b"KICKED\r\n"
    assert await wire.ask(b"delete %d" % late) == b"DELETED\r\n"
    assert await wire.ask(b"delete %d" % number) == b"DELETED\r\n"
    assert (await api.get(f"{tube}-order")).ok()["state"] == "finished"
    assert (await api.get(f"{tube}-late")).ok() is None


async def test_a_job_with_a_call_is_not_reserved(
    processes: Processes, redis_server: StoreServer, tube: str
) -> None:
    database = redis_server.new_database()
    server = opened(processes, redis_server, redis__db=database)
    caller = processes.server(redis_server, redis__db=database, calls="yes")
    async with open_api(caller.url) as api:
        job = {"topic": tube, "id": "4711", "delay": 3600, "call": {"url": "http://example.com/"}}
        (await api.push(**job)).ok()
    caller.kill()  # so that nobody makes the call
    async with open_api(server.server.url) as api, Wire.opened(server.port) as wire:
        await at_home(wire, tube)
        assert await wire.ask(b"reserve-job 4711") == b"NOT_FOUND\r\n"
        (await api.call("/kick", {"id": "4711"})).ok()
        assert (await api.get("4711")).ok()["state"] == "ready"
        assert await wire.ask(b"reserve-job 4711") == b"NOT_FOUND\r\n"
        assert await wire.ask(b"reserve-with-timeout 0") == b"TIMED_OUT\r\n"
        number = await wire.put(b"for workers")
        assert await wire.reserve() == (number, b"for workers")


async def test_the_number_that_is_somebodys_id_is_not_given_to_a_job(
    api: Api, wire: Wire, tube: str
) -> None:
    known = await wire.put(b"a")
    ids = [str(known + 1 + n) for n in range(500)]
    (await api.push_all([{"topic": f"{tube}-x", "id": job_id} for job_id in ids])).ok()
    numbers = [await wire.put(b"b") for _ in range(3)]
    assert len({*numbers}) == 3
    assert not {*map(str, numbers)} & {*ids}


class OrdersAreIds:
    """A queue whose ids up to this number are taken; counts the calls."""

    def __init__(self, last: int) -> None:
        self._counter = _Counter()
        self._last = last
        self.calls: Counter[str] = Counter()
        self.pushed: list[int] = []
        self.store = SimpleNamespace(registry=self)
        self.polls = Mock()

    def within(self, _: Scope) -> Self:
        return self

    async def numbers(self, count: int) -> int:
        self.calls["numbers"] += 1
        return await self._counter.fetch(count)

    async def push_many(self, jobs: Sequence[Job]) -> list[Pushed]:
        self.calls["push"] += 1
        numbers = [int(job.id) for job in jobs]
        self.pushed += [number for number in numbers if number > self._last]
        codes = (Code.OK if number > self._last else Code.JOB_EXISTS for number in numbers)
        return [Pushed(code) for code in codes]


async def given(answer: Answer) -> bytes:
    """The answer, however it is given."""
    while isinstance(answer, Pending):
        answer = answer.read(await answer.call)
    return answer if isinstance(answer, bytes) else await answer


async def test_numbers_go_on_behind_those_that_are_somebodys_ids() -> None:
    queue = OrdersAreIds(100_000)
    server = BeanstalkServer(cast("DelayQueue", queue), TubeAccess(True, EVERYWHERE, 65_535))

    async def put_many(count: int) -> list[int]:
        lines = await given(put(server, [Job("t", "", "body", 1000) for _ in range(count)]))
        assert lines.count(b"INSERTED") == count
        return [int(number) for number in lines.split()[1::2]]

    both = await asyncio.gather(put_many(400), put_many(300))
    at_once = [number for numbers in both for number in numbers]
    assert queue.calls["push"] + queue.calls["numbers"] < 3 * 10
    queue.calls.clear()
    later = [number for _ in range(10) for number in await put_many(30)]
    assert queue.calls == {"push": 10}
    assert [*at_once, *later] == sorted(queue.pushed) == queue.pushed
    assert len({*queue.pushed}) == 1000


async def test_a_number_for_another_id_is_nobodys_id(api: Api, wire: Wire, tube: str) -> None:
    known = await wire.put(b"a", 5)
    numeric = [{"topic": tube, "id": str(known + 1 + n)} for n in range(5)]
    (await api.push_all([*numeric, {"topic": tube, "id": f"{tube}-order"}])).ok()
    numbers = [(await wire.reserve())[0] for _ in range(7)]
    assert len({*numbers}) == 7
    assert [await wire.ask(b"delete %d" % number) for number in numbers] == [b"DELETED\r\n"] * 7


async def test_each_delete_is_counted_for_its_tube(wire: Wire, tube: str) -> None:
    ready, delayed, held = [await wire.put(b"a", 5, delay_s) for delay_s in (0, 1000, 0)]
    assert await wire.ask(b"reserve-job %d" % held) == b"RESERVED %d 1\r\na\r\n" % held
    for number in (ready, delayed, held):
        assert await wire.ask(b"delete %d" % number) == b"DELETED\r\n"
    assert (await wire.stats(f"stats-tube {tube}".encode()))["cmd-delete"] == "3"


async def test_a_job_that_is_pushed_anew_is_not_ended_with_the_one_that_it_replaces(
    api: Api, wire: Wire, tube: str
) -> None:
    (await api.push(topic=tube, id=f"{tube}-order", body="old")).ok()
    number, _ = await wire.reserve()
    (await api.push(topic=tube, id=f"{tube}-order", body="new")).ok()
    assert await wire.ask(b"delete %d" % number) == b"NOT_FOUND\r\n"
    assert (await wire.reserve()) == (number, b"new")


LATE: Final = {
    "a touch": (b"touch %d", b"NOT_FOUND\r\n"),
    "a release": (b"release %d 5 0", b"NOT_FOUND\r\n"),
    "a bury": (b"bury %d 5", b"NOT_FOUND\r\n"),
    "a reserve": (b"reserve-with-timeout 0", b"TIMED_OUT\r\n"),
}


@pytest.mark.parametrize("asked", LATE)
@pytest.mark.parametrize("is_replaced", [True, False], ids=["replaced", "the same"])
async def test_a_connection_that_has_heard_that_its_time_is_over_still_deletes_only_its_job(
    api: Api, wire: Wire, tube: str, asked: str, *, is_replaced: bool
) -> None:
    number = await wire.put(b"old", 5, 0, 1)
    assert await wire.ask(b"reserve-job %d" % number) == b"RESERVED %d 3\r\nold\r\n" % number
    await wire.ask(b"watch nothing-comes")
    await wire.ask(b"ignore " + tube.encode())
    await until_async(lambda: _has_state(api, number, "ready"))
    if is_replaced:
        (await api.push(topic=tube, id=str(number), body="new")).ok()
    command, answer = LATE[asked]
    question = command % number if b"%d" in command else command
    await until_async(lambda: _answers(wire, question, answer))
    deleted = await wire.ask(b"delete %d" % number)
    assert deleted == (b"NOT_FOUND\r\n" if is_replaced else b"DELETED\r\n")
    assert ((await api.get(str(number))).ok() is not None) == is_replaced


async def _has_state(api: Api, number: int, state: str) -> bool:
    return bool((await api.get(str(number))).ok()["state"] == state)


async def _answers(wire: Wire, question: bytes, answer: bytes) -> bool:
    return await wire.ask(question) == answer


async def test_a_priority_counts_over_both_protocols(api: Api, wire: Wire, tube: str) -> None:
    (await api.push(topic=tube, id=f"{tube}-a", priority=30)).ok()
    await wire.put(b"b", 20)
    (await api.push(topic=tube, id=f"{tube}-c", body="c", priority=10)).ok()
    assert (await wire.reserve())[1] == b"c"
    assert (await api.pop(tube)).ok()["body"] == "b"
    assert (await wire.stats(b"stats-tube " + tube.encode()))["current-jobs-urgent"] == "1"


async def test_longer_times_than_a_record_can_hold_are_cut(wire: Wire) -> None:
    number = await wire.put(b"a", 5, 2**32 - 1, 2**32 - 1)
    stats = await wire.stats(b"stats-job %d" % number)
    assert (stats["delay"], stats["ttr"]) == (str(2**31), str(60 * 86_400))
    await wire.ask(b"reserve-job %d" % number)
    assert await wire.ask(b"release %d 5 %d" % (number, 2**32 - 1)) == b"RELEASED\r\n"
    assert (await wire.stats(b"stats-job %d" % number))["delay"] == str(2**31)


async def test_the_history_tells_what_a_connection_did(api: Api, wire: Wire) -> None:
    number = await wire.put(b"a")
    await wire.reserve()
    assert await wire.ask(b"release %d 5 0" % number) == b"RELEASED\r\n"
    await wire.reserve()
    assert await wire.ask(b"bury %d 6" % number) == b"BURIED\r\n"
    job = (await api.get(str(number))).ok()
    assert [attempt["message"] for attempt in job["attempts"]] == ["released", "buried"]
    assert (job["state"], job["priority"]) == ("buried", 6)
    (await api.call("/kick", {"id": str(number)})).ok()
    assert (await wire.reserve())[0] == number
    stats = await wire.stats(b"stats-job %d" % number)
    assert (stats["releases"], stats["buries"], stats["kicks"]) == ("1", "1", "1")


async def test_a_connection_that_is_lost_gives_its_jobs_back_at_once_and_uncounted(
    api: Api, wire: Wire, connect: Callable[[], Awaitable[Wire]], tube: str
) -> None:
    await wire.put(b"a", 5, 0, 1000)
    (await api.push(topic=tube, id=f"{tube}-b", body="b", retry={"delays": [1000]}, ttr=1000)).ok()
    assert {(await wire.reserve())[1] for _ in range(2)} == {b"a", b"b"}
    wire.reset()
    for body in ("a", "b"):
        job = (await api.pop(tube)).ok()
        assert (job["body"], job["attempt"]) == (body, 1)
        known = (await api.get(job["id"])).ok()
        assert (known["message"], known["attempts"]) == ("connection lost", [])


async def test_a_worker_that_dies_of_its_job_finds_how_often_it_was_reserved(
    wire: Wire, connect: Callable[[], Awaitable[Wire]], tube: str
) -> None:
    number = await wire.put(b"a", 5, 0, 1000)
    for _ in range(3):
        worker = await at_home(await connect(), tube)
        assert (await worker.reserve())[0] == number
        worker.reset()
    worker = await at_home(await connect(), tube)
    assert (await worker.reserve())[0] == number
    stats = await worker.stats(b"stats-job %d" % number)
    assert (stats["reserves"], stats["timeouts"], stats["releases"]) == ("4", "0", "0")


async def test_what_a_client_that_reads_nothing_was_not_told_of_is_not_said_to_be_lost(
    api: Api, wire: Wire, tube: str
) -> None:
    for _ in range(200):
        await wire.put(b"x" * 60_000, 5, 0, 1000)
    wire.read_nothing()
    await wire.send(b"reserve\r\n" * 200)

    looks = [-1]

    async def stuck() -> bool:
        await asyncio.sleep(0.2)
        looks.append(await reserved(api, tube))
        return 0 < looks[-1] < 200 and len({*looks[-8:]}) == 1

    await until_async(stuck)
    told = looks[-1] - 1
    wire.reset()
    jobs = [(await api.pop(tube)).ok() for _ in range(200)]
    known = [(await api.get(job["id"])).ok() for job in jobs]
    assert sum(job["message"] == "connection lost" for job in known) == told


async def reserved(api: Api, tube: str) -> int:
    return sum(
        topic["reserved"]
        for topic in (await api.call("/topics", {})).ok()
        if topic["topic"] == tube
    )


async def test_a_poll_and_a_reserve_wait_in_one_queue(api: Api, wire: Wire, tube: str) -> None:
    poll = asyncio.create_task(api.pop(tube))
    await wire.send(b"reserve\r\n")
    for job_id in ("x", "y"):
        (await api.push(topic=tube, id=f"{tube}-{job_id}", body=job_id)).ok()
    bodies = {(await poll).ok()["body"], (await wire.answer()).splitlines()[1].decode()}
    assert bodies == {"x", "y"}


async def test_list_tubes_leaves_out_what_is_no_name_of_a_tube(
    api: Api, wire: Wire, tube: str
) -> None:
    for topic in (f"{tube}.x", f"{tube}:x", f"{tube} x", f"{tube}-订单"):
        (await api.push(topic=topic, id=topic)).ok()
    names = (await wire.ask(b"list-tubes")).decode().splitlines()[2:]
    assert [name for name in names if tube in name] == [f"- {tube}", f"- {tube}.x"]


async def test_a_job_of_any_of_thousands_of_watched_tubes_comes(
    connect: Callable[[], Awaitable[Wire]], tube: str
) -> None:
    taker, giver = await connect(), await connect()
    names = [f"{tube}-{n:05}".encode() for n in range(9000)]
    await taker.send(b"".join(b"watch %b\r\n" % name for name in names))
    assert [await taker.answer() for _ in names][-1] == b"WATCHING 9001\r\n"
    for place in (8000, 3, 600):
        await taker.send(b"reserve-with-timeout 20\r\n")
        await giver.ask(b"use " + names[place])
        number = await giver.put(b"x")
        assert (await taker.answer()).startswith(b"RESERVED %d " % number)
    await giver.put(b"y")
    assert (await taker.reserve(0))[1] == b"y"
    assert await taker.ask(b"reserve-with-timeout 0") == b"TIMED_OUT\r\n"


async def test_more_than_fits_in_one_call_is_pipelined(wire: Wire) -> None:
    count = 3000
    await wire.send(b"".join(b"put 5 0 60 4\r\n%04d\r\n" % n for n in range(count)))
    numbers = [int((await wire.answer()).split()[1]) for _ in range(count)]
    assert len({*numbers}) == count
    await wire.send(b"reserve\r\n" * count)
    bodies = [(await wire.answer()).splitlines()[1] for _ in range(count)]
    assert bodies == [b"%04d" % n for n in range(count)]
    await wire.send(b"".join(b"delete %d\r\n" % number for number in numbers))
    assert {await wire.answer() for _ in range(count)} == {b"DELETED\r\n"}


class _Counter:
    """Gives out numbers."""

    def __init__(self) -> None:
        self.last = 0

    async def fetch(self, count: int) -> int:
        self.last += count
        return self.last - count + 1


async def test_the_alias_that_was_used_least_recently_is_forgotten() -> None:
    ids = Ids(Numbers(_Counter().fetch), most=2)
    one, two = await ids.number_of("one"), await ids.number_of("two")
    assert ids.id_of(one) == "one"
    three = await ids.number_of("three")
    assert [ids.id_of(number) for number in (one, two, three)] == ["one", str(two), "three"]
    assert await ids.number_of("one") == one
    assert await ids.number_of("two") not in {one, two, three}
    assert [ids.id_of(number) for number in (one, three)] == ["one", str(three)]


@pytest.mark.parametrize(
    ("job_id", "is_number"),
    [
        ("7", True),
        ("0", True),
        ("07", False),
        ("-7", False),
        (str(2**52 - 1), True),
        (str(2**52), False),
        (str(2**53), False),
        ("７", False),
    ],
)
async def test_an_id_that_is_a_number_is_that(job_id: str, *, is_number: bool) -> None:
    ids = Ids(Numbers(_Counter().fetch))
    number = await ids.number_of(job_id)
    assert (str(number) == job_id) == is_number
    assert ids.id_of(number) == job_id
