"""A server that is killed or stopped while it calls: nothing is lost, at most the call under way is repeated."""

import asyncio

import pytest

from delayqueue.config.failpoint import EXIT_STATUS
from tests.api_client import open_api
from tests.processes import Processes, QueueServer, StoreServer
from tests.waiting import until

from .conftest import Shop, results
from .receiver import Answer, Receiver


def server_on(
    processes: Processes, store: StoreServer, database: object = None, failpoint: str = ""
) -> QueueServer:
    more = {"failpoint": failpoint} if failpoint else {}
    return processes.server(
        store,
        None,
        webhook_allow="127.0.0.1/32",
        redis__db=database or store.new_database(),
        **more,
    )


async def begin_the_second_of_three_calls(
    server: QueueServer, receiver: Receiver, topic: str, ttr: int
) -> asyncio.Event:
    """Push a job whose second call is under way then; it ends once the event is set."""
    hold = asyncio.Event()
    receiver.says("two", Answer(hold=hold), Answer())
    async with open_api(server.url) as api:
        shop = Shop(api, receiver, topic)
        for order, path in enumerate(("one", "two", "three")):
            await shop.subscribe(path, order=order)
        await shop.push(ttr=ttr)
        await until(lambda: receiver.paths == ["one", "two"])
    return hold


async def test_a_kill_repeats_the_call_under_way_and_no_other(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, topic: str
) -> None:
    server = server_on(processes, redis_server)
    await begin_the_second_of_three_calls(server, receiver, topic, ttr=4)
    server.kill()
    server.start()
    async with open_api(server.url) as api:
        job = await Shop(api, receiver, topic).becomes("finished")
    assert receiver.paths == ["one", "two", "two", "three"]
    assert (job["attempt"], [result[1] for result in results(job).values()]) == (2, [1, 1, 1])


@pytest.mark.parametrize(
    ("failpoint", "calls"),
    [
        pytest.param("record.before", 2, id="the result is not recorded: the call comes again"),
        pytest.param("record.after", 1, id="the last result has ended the job"),
    ],
)
async def test_a_crash_at_the_record_of_the_last_result(
    processes: Processes,
    redis_server: StoreServer,
    receiver: Receiver,
    topic: str,
    failpoint: str,
    calls: int,
) -> None:
    database = redis_server.new_database()
    doomed = server_on(processes, redis_server, database, failpoint)
    async with open_api(doomed.url) as api:
        shop = Shop(api, receiver, topic)
        await shop.subscribe("one")
        await shop.push(ttr=4)
        await until(lambda: doomed.exit_status() is not None)
    assert doomed.exit_status() == EXIT_STATUS
    successor = server_on(processes, redis_server, database)
    async with open_api(successor.url) as api:
        job = await Shop(api, receiver, topic).becomes("finished")
    assert receiver.paths == ["one"] * calls
    assert (job["attempt"], results(job)) == (calls, {"one": ("succeeded", 1, "200")})


async def test_a_stop_waits_for_the_call_under_way_and_gives_the_rest_back(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, topic: str
) -> None:
    server = server_on(processes, redis_server)
    hold = await begin_the_second_of_three_calls(server, receiver, topic, ttr=3600)
    stopped = asyncio.create_task(asyncio.to_thread(server.stop))
    await until(lambda: "stopping" in server.logged())
    hold.set()
    assert await stopped == 0
    assert receiver.paths == ["one", "two"]
    server.start()
    async with open_api(server.url) as api:
        await Shop(api, receiver, topic).becomes("finished")
    assert receiver.paths == ["one", "two", "three"]


async def test_a_stop_does_not_wait_for_ever_and_the_job_comes_again_at_once(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, topic: str
) -> None:
    server = server_on(processes, redis_server)
    receiver.says("hangs", Answer(hold=asyncio.Event()), Answer())
    async with open_api(server.url) as api:
        shop = Shop(api, receiver, topic)
        await shop.subscribe("hangs", timeout=300)
        await shop.push(ttr=3600)
        await until(lambda: receiver.paths == ["hangs"])
    assert await asyncio.to_thread(server.stop) == 0  # before the call's time is over, and the TTR
    server.start()
    async with open_api(server.url) as api:
        await Shop(api, receiver, topic).becomes("finished")
    assert receiver.paths == ["hangs", "hangs"]


async def test_a_success_is_not_forgotten_while_the_store_is_away(
    processes: Processes, receiver: Receiver, topic: str
) -> None:
    # with everysec, Redis may answer before it has written, while a sync takes long
    store = processes.redis("--appendonly", "yes", "--appendfsync", "always")
    server = server_on(processes, store)
    hold = asyncio.Event()
    receiver.says("one", Answer(hold=hold))
    async with open_api(server.url) as api:
        shop = Shop(api, receiver, topic)
        await shop.subscribe("one", order=1)
        await shop.subscribe("two", order=2)
        await shop.push(ttr=60)
        await until(lambda: receiver.paths == ["one"])
        store.kill()
        hold.set()
        await asyncio.sleep(0.5)
        store.start()
        await shop.becomes("finished")
    assert receiver.paths == ["one", "two"]
    server.close()
    store.close()
