"""Handlers are foreign code: whatever one does is a failed attempt of its own, by its schedule, and nothing else."""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from delayqueue.domain.job import MAX_MESSAGE_CHARS
from tests.api_client import Api, open_api
from tests.processes import Processes, QueueServer, StoreServer
from tests.waiting import until, until_async

from .conftest import Shop, results
from .receiver import Receiver

MODULE: Final = "tests.delivery.misbehaving"
TIMEOUT: Final = "timeout: 0.3 s"
FAILURES: Final = {
    "raises_no_exception": "Timeout: late with raises_no_exception-job",
    "interrupts": "KeyboardInterrupt",
    "exits": "SystemExit: 0",
    "is_cancelled": "CancelledError",
    "stops_iterating": "StopIteration",
    "names_a_file": "OSError: caf\\udce9",
    "is_unspeakable": "UnspeakableError: (UnspeakableError, whose text is not available: KeyboardInterrupt)",
    "shouts": ("ValueError: " + "A" * MAX_MESSAGE_CHARS)[:MAX_MESSAGE_CHARS],
    "sleeps": TIMEOUT,
    "async_raises_no_exception": "Timeout: late with async_raises_no_exception-job",
    "async_interrupts": "KeyboardInterrupt",
    "async_exits": "SystemExit: 0",
    "async_is_cancelled": "CancelledError",
    "async_cancels_itself": "CancelledError",
    "async_stops_iterating": "StopAsyncIteration",
    "async_does_not_stop": TIMEOUT,
    "async_sleeps": TIMEOUT,
    "async_sleeps_in_a_thread": TIMEOUT,
    "sleeps_in_an_executor": TIMEOUT,
    "async_stops_the_loop": "LookupError: all the same",
    "async_leaves_a_task": "LookupError: task done: True",
    "returns_a_generator": "TypeError: it returned a generator, which nothing runs",
    "returns_a_function": "TypeError: it returned a builtin_function_or_method, which nothing runs",
    "async_forgets_an_await": "TypeError: it returned a coroutine, which nothing runs",
    "async_breaks_the_loop": TIMEOUT,
}
HANGING: Final = [
    "sleeps",
    "sleeps_in_an_executor",
    "async_does_not_stop",
    "async_sleeps_in_a_thread",
]
SUCCESSES: Final = {
    "returns_a_file_name": "caf\\udce9",
    "returns_much": "B" * MAX_MESSAGE_CHARS,
    "returns_the_unspeakable": "(Unspeakable, whose text is not available: Timeout)",
    "is_async_in_disguise": "waited for is_async_in_disguise-job",
}


def section(name: str, handler: str, **options: object) -> str:
    lines = {"topic": name, "handler": f"{MODULE}:{handler}", "retry": "0.1"} | options
    return f"[subscriber {name}]\n" + "\n".join(f"{key} = {value}" for key, value in lines.items())


SECTIONS: Final = "\n".join(
    [
        *(
            section(
                name,
                name,
                timeout="0.3" if FAILURES[name] == TIMEOUT else 30,
                retry="2" if name == "async_sleeps" else "0.1",  # or it blocks its own next call
            )
            for name in FAILURES
        ),
        *(section(name, name) for name in [*SUCCESSES, "async_blocks"]),
        section("healthy", "is_async_in_disguise"),
        section("patient", "async_is_quick", timeout=2, retry="none", concurrency=1),
        section("narrow", "sleeps", timeout=0.3, concurrency=1),
    ]
)
CONFIG: Final = f"language = en\nwebhook_allow = 127.0.0.1/32\n{SECTIONS}\n"


@pytest.mark.parametrize("name", FAILURES)
async def test_a_handler_that_misbehaves_has_failed_by_its_schedule(
    own_server: QueueServer, own_api: Api, receiver: Receiver, name: str
) -> None:
    shop = Shop(own_api, receiver, name)
    await shop.push()
    job = await shop.becomes("buried", within_s=15)
    assert results(job) == {name: ("failed", 2, FAILURES[name])}
    assert job["attempt"] == 2
    first, second = job["attempts"]
    delay_s = round(second["started"] - first["ended"], 3)  # floats lose a little of whole ms
    assert delay_s >= 0.1
    healthy = Shop(own_api, receiver, "healthy")
    await healthy.push(f"after-{name}")
    await healthy.becomes("finished", f"after-{name}", within_s=15)
    assert own_server.exit_status() is None


@pytest.mark.parametrize("name", SUCCESSES)
async def test_what_a_handler_returns_is_its_message_whatever_it_is(
    own_api: Api, receiver: Receiver, name: str
) -> None:
    shop = Shop(own_api, receiver, name)
    await shop.push()
    job = await shop.becomes("finished")
    assert results(job) == {name: ("succeeded", 1, SUCCESSES[name])}


async def test_a_handler_whose_loop_is_blocked_was_not_called_and_nothing_is_counted(
    own_server: QueueServer, own_api: Api, receiver: Receiver, tmp_path: Path
) -> None:
    """Without retries, its job would be buried though it did nothing wrong; its place is free for the next call."""
    shop = Shop(own_api, receiver, "patient")
    blocking = tmp_path / "blocking"
    await Shop(own_api, receiver, "async_blocks").push(body=str(blocking))
    await until(blocking.exists)
    await shop.push()
    said = f"patient was not called for 2 s: {MODULE}:async_blocks blocks the loop"
    await until(lambda: said in own_server.logged())
    blocking.unlink()
    job = await shop.becomes("finished", within_s=60)
    assert results(job) == {"patient": ("succeeded", 1, "done")}
    assert job["attempt"] == 1


async def test_calls_that_hang_keep_their_places_and_the_topic_goes_on(
    own_server: QueueServer, own_api: Api, receiver: Receiver
) -> None:
    """No more threads hang than `concurrency` allows; a call that finds no slot in time has failed."""
    shop = Shop(own_api, receiver, "narrow")
    before = threads(own_server)
    await asyncio.gather(*(shop.push(f"narrow-{n}") for n in range(5)))
    for n in range(5):
        job = await shop.becomes("buried", f"narrow-{n}", within_s=60)
        assert results(job) == {"narrow": ("failed", 2, TIMEOUT)}
    assert threads(own_server) <= before + 1


def threads(server: QueueServer) -> int:
    with open(f"/proc/{server.pid}/status", encoding="ascii") as status:  # noqa: PTH123
        (count,) = [line.split()[1] for line in status if line.startswith("Threads:")]
    return int(count)


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_server_ends_though_handlers_do_not(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, workers: int
) -> None:
    config = CONFIG.replace("timeout = 0.3", "timeout = 60")
    server = processes.configured(f"workers = {workers}\n{config}", redis_server)
    server.start()
    async with open_api(server.url) as api:
        for name in HANGING:
            await Shop(api, receiver, name).push()

        async def have_begun() -> bool:
            topics = (await api.request("GET", "/topics")).ok()
            return [topic["reserved"] for topic in topics] == [1] * len(HANGING)

        await until_async(have_begun)
    assert server.stop() == 0
    assert "killing it" not in server.logged()
