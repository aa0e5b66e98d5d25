"""Protected mode: without a token, only clients on this machine's loopback are served."""

import asyncio
import random
import signal
import socket
from itertools import product
from typing import Final

import pytest

from tests.api.dialogue import post
from tests.api_client import FORBIDDEN, OK, Api, open_api
from tests.figures import scrape
from tests.hangups import reset
from tests.processes import LOOPBACK, Processes, StoreServer, free_port
from tests.waiting import until, until_async

RESETS: Final = 150
# from a block reserved for documentation; nothing is sent there
ELSEWHERE: Final = ("198.51.100.1", 9)


@pytest.fixture(scope="module")
def own_address() -> str:
    """An address of this machine other than loopback: its clients look like strangers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(ELSEWHERE)
        except OSError:
            pytest.skip("this machine has no address but its loopback")
        address: str = probe.getsockname()[0]
    return address


async def test_protected_mode_refuses_strangers_and_serves_this_machine(
    processes: Processes, redis_server: StoreServer, own_address: str
) -> None:
    server = processes.server(redis_server, bind_address=f"0.0.0.0:{(port := free_port())}")
    names = {"X-Forwarded-For": LOOPBACK, "X-Real-IP": LOOPBACK, "Host": "localhost"}
    claims: list[dict[str, str]] = [{}, *({name: value} for name, value in names.items())]
    paths = ("/push", "/pop", "/finish", "/delete", "/get", "/nope")
    async with open_api(f"http://{own_address}:{port}") as stranger:
        for claim, path in product(claims, paths):
            answer = await stranger.call(path, {"topic": "t", "id": "a", "ttr": 1}, claim)
            assert "protected_mode" in answer.refused(FORBIDDEN, status=403)
    async with open_api(f"http://{LOOPBACK}:{port}") as local:
        assert (await local.get("a")).ok() is None
        by_proxy = await local.call("/get", {"id": "a"}, {"X-Forwarded-For": LOOPBACK})
        assert "X-Forwarded-For" in by_proxy.refused(FORBIDDEN, status=403)
    assert f":{port}, clients on this machine only (protected_mode = yes)" in server.logged()


async def test_a_stranger_that_waits_gets_no_job_once_protected_mode_is_on(
    processes: Processes, redis_server: StoreServer, own_address: str, topic: str
) -> None:
    address = f"0.0.0.0:{(port := free_port())}"
    server = processes.configured("protected_mode = no\n", redis_server, bind_address=address)
    server.start()
    async with (
        open_api(f"http://{own_address}:{port}") as stranger,
        open_api(f"http://{LOOPBACK}:{port}") as local,
    ):

        async def waits() -> bool:
            return (await scrape(local)).sum("delayqueue_waiting_polls") == 1

        async def is_ready() -> bool:
            return bool((await local.get("a")).ok()["state"] == "ready")

        poll = asyncio.create_task(stranger.pop(topic, timeout=60))
        await until_async(waits)
        (server.home / "delay-queue.conf").write_text("protected_mode = yes\n", encoding="utf-8")
        server.send(signal.SIGHUP)
        await until(lambda: "reloaded: " in server.logged())
        (await local.push(topic=topic, id="a", delay=0, body="secret")).ok()
        assert "protected_mode" in (await poll).refused(FORBIDDEN, status=403)
        await until_async(is_ready)


async def push_and_reset(address: str, port: int, topic: str, after_s: float) -> None:
    """Push from this address, and close with RST without waiting for the answer."""
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setblocking(False)
        connection.bind((address, 0))
        await loop.sock_connect(connection, (address, port))
        await loop.sock_sendall(connection, post("/push", {"topic": topic, "id": "*", "ttr": 60}))
        await asyncio.sleep(after_s)
        reset(connection)


async def test_a_stranger_that_is_gone_already_is_a_stranger(
    processes: Processes, redis_server: StoreServer, own_address: str
) -> None:
    """The system no longer tells the address of a connection that was reset."""
    processes.server(redis_server, bind_address=f"0.0.0.0:{(port := free_port())}")
    waits_s = [0.0] * RESETS + [random.uniform(0, 0.01) for _ in range(RESETS)]
    for after_s in waits_s:
        await push_and_reset(own_address, port, "strangers", after_s)
    async with open_api(f"http://{LOOPBACK}:{port}") as local:
        (await local.push(topic="ours", id="a", delay=60)).ok()
        topics = (await local.call("/topics", {})).ok()
    assert [each["topic"] for each in topics] == ["ours"]


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("localhost", OK),
        ("LocalHost", OK),
        (LOOPBACK, OK),
        ("[::1]", OK),
        ("evil.example", FORBIDDEN),
        ("localhost.evil.example", FORBIDDEN),
        ("127.0.0.1.evil.example", FORBIDDEN),
        ("", FORBIDDEN),
        ("[", FORBIDDEN),
    ],
)
async def test_a_page_that_gave_its_name_our_address_is_refused(
    ordered_api: Api, host: str, code: int
) -> None:
    """To the browser it is the same site, so only the name gives it away."""
    name = f"{host}:{ordered_api.url.rpartition(':')[2]}"
    page = {"Host": name, "Origin": f"http://{name}"}
    assert (await ordered_api.call("/get", {"id": "a"}, page)).code == code
    assert (await ordered_api.call("/get", {"id": "a"}, {"Host": name})).code == OK
