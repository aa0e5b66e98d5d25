"""/get with `timeout` answers when the job has ended: whoever ends it, in whatever way, at whatever moment."""

import asyncio
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any, Final

import pytest
from redis.asyncio import Redis

from tests.api_client import OK, TOO_MANY, UNAUTHORIZED, Api, Envelope, open_api
from tests.figures import scrape
from tests.hangups import close, half_close, reset
from tests.processes import LOOPBACK, Processes, StoreServer
from tests.waiting import until, until_async

from .conftest import Pair
from .dialogue import post

WAIT_S: Final = 25.0
PROMPT_S: Final = 2.0  # for most, unless the machine is busy
RACES: Final = 100
OLD, NEW = "admin-token-12345678", "other-token-12345678"


def waiting_get(api: Api, job_id: str, **fields: object) -> asyncio.Task[Envelope]:
    asked = {"id": job_id, "timeout": WAIT_S} | fields
    return asyncio.create_task(api.call("/get", asked))


async def waiting(api: Api, number: int) -> None:
    """Wait until so many are waiting at the server."""

    async def do_wait() -> bool:
        return (await scrape(api)).sum("delayqueue_waiting_polls") == number

    await until_async(do_wait)


async def reserved(api: Api, topic: str, **job: Any) -> None:
    (await api.push(topic=topic, id=topic, delay=0, **job)).ok()
    (await api.pop(topic)).ok()


@pytest.mark.parametrize(
    ("path", "state"),
    [("/delete", "cancelled"), ("/bury", "buried"), ("/finish", "finished")],
)
async def test_it_answers_with_the_job_when_it_has_ended(
    api: Api, topic: str, path: str, state: str
) -> None:
    await reserved(api, topic, retain=60)
    answer = waiting_get(api, topic, options=True)
    (await api.call(path, {"id": topic, "message": "done: 42"})).ok()
    job = (await answer).ok()
    assert (job["state"], job["message"], job["retain"]) == (state, "done: 42", 60)


async def test_after_the_timeout_the_job_is_told_as_it_is(api: Api, topic: str) -> None:
    (await api.push(topic=topic, id=topic, delay=60)).ok()
    began_s = time.monotonic()
    job = (await waiting_get(api, topic, timeout=0.5)).ok()
    assert job["state"] == "delayed"
    assert time.monotonic() - began_s >= 0.5
    assert (await waiting_get(api, topic, timeout=0)).ok()["state"] == "delayed"


async def test_all_who_wait_for_a_job_hear_of_its_end(api: Api, topic: str) -> None:
    await reserved(api, topic, retain=60)
    answers = [waiting_get(api, topic) for _ in range(20)]
    (await api.finish(topic)).ok()
    assert {(await answer).ok()["state"] for answer in answers} == {"finished"}


async def test_many_jobs_are_told_as_they_are(api: Api) -> None:
    assert (await api.call("/get", {"ids": ["x", "y"], "timeout": 0})).ok() == [None, None]


async def test_ends_at_any_moment_of_either_server_are_heard_of(pair: Pair, topic: str) -> None:
    """The job ends before, while, or after the server looks for it and begins to wait."""
    late_s: list[float] = []

    async def race(number: int) -> None:
        job_id = f"{topic}/{number}"
        waiter, ender = pair[number % 2], pair[number // 2 % 2]
        answer = waiting_get(waiter, job_id)
        await asyncio.sleep(number % 10 * 0.001)
        (await ender.finish(job_id)).ok()
        ended_s = time.monotonic()
        assert (await answer).ok()["state"] == "finished"
        late_s.append(time.monotonic() - ended_s)

    async def are_prompt() -> bool:
        late_s.clear()
        jobs = [{"topic": topic, "id": f"{topic}/{n}", "retain": 60} for n in range(RACES)]
        (await pair[0].push_all(jobs)).ok()
        for first in range(0, RACES, 10):
            await asyncio.gather(*(race(number) for number in range(first, first + 10)))
        return median(late_s) < PROMPT_S

    await until_async(are_prompt)


async def forget_who_waits(redis: Redis) -> None:
    """What an older version of the server does: it announces no end."""

    async def forgets() -> bool:
        return bool(await redis.delete("{dq_bucket_1}:awaited"))

    await until_async(forgets)


async def break_listeners(redis: Redis) -> None:
    await redis.client_kill_filter(_type="pubsub")


@pytest.mark.parametrize("lose", [forget_who_waits, break_listeners])
async def test_an_end_that_is_not_announced_is_found_all_the_same(
    processes: Processes,
    redis_server: StoreServer,
    topic: str,
    lose: Callable[[Redis], Awaitable[None]],
) -> None:
    database = redis_server.new_database()
    server = processes.server(redis_server, redis__db=database)
    async with (
        open_api(server.url) as api,
        Redis(host=LOOPBACK, port=redis_server.port, db=database) as redis,
    ):
        await reserved(api, topic, retain=60)
        answer = waiting_get(api, topic)
        await waiting(api, 1)
        await lose(redis)
        (await api.finish(topic)).ok()
        assert (await answer).ok()["state"] == "finished"


async def test_a_server_that_ends_answers_with_what_the_jobs_are(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    server = processes.server(redis_server)
    async with open_api(server.url) as api:
        await reserved(api, topic)
        answers = [waiting_get(api, topic) for _ in range(100)]
        await waiting(api, 100)
        server.send(signal.SIGTERM)
        assert [(await answer).ok()["state"] for answer in answers] == ["reserved"] * 100
        await until(lambda: server.exit_status() is not None)
    assert server.exit_status() == 0


async def test_they_count_as_waiting_polls(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    server = processes.server(redis_server, max_polls=2)
    async with open_api(server.url) as api:
        await reserved(api, topic)
        answers = [waiting_get(api, topic), asyncio.create_task(api.pop("other", timeout=20))]
        await waiting(api, 2)
        (await waiting_get(api, topic)).refused(TOO_MANY, status=429)
        (await api.pop("other", timeout=1)).refused(TOO_MANY, status=429)
        (await api.finish(topic)).ok()
        assert (await answers[0]).code == OK
        answers[1].cancel()


async def test_clients_that_are_gone_wait_no_longer(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    server = processes.server(redis_server)
    async with open_api(server.url) as api:
        await reserved(api, topic)
        request = post("/get", {"id": topic, "timeout": 60})
        for go in (close, reset, half_close):
            clients = [socket.create_connection((LOOPBACK, server.port)) for _ in range(20)]
            for client in clients:
                client.sendall(request)
            await waiting(api, len(clients))
            for client in clients:
                go(client)
            await waiting(api, 0)
            for client in clients:
                client.close()


async def test_a_token_that_is_gone_meanwhile_gets_no_answer(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    server = processes.configured(f"auth_tokens = admin:{OLD}\n", redis_server)
    server.start()
    file = server.home / "delay-queue.conf"
    async with open_api(server.url, OLD) as old, open_api(server.url, NEW) as new:
        await reserved(old, topic, retain=60)
        answer = waiting_get(old, topic)
        await waiting(old, 1)
        file.write_text(f"auth_tokens = admin:{NEW}\n", encoding="utf-8")
        server.send(signal.SIGHUP)

        async def is_let_in() -> bool:
            return (await new.get(topic)).code == OK

        await until_async(is_let_in)
        (await new.finish(topic)).ok()
        (await answer).refused(UNAUTHORIZED, status=401)
