"""What the clients do when connections break: repeat what is safe to repeat, and report the rest."""

import asyncio
import gc
import json
import re
import socket
import threading
import weakref
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import uvloop

from delayqueue import Worker
from delayqueue.answers.jobs import ReservedJob
from delayqueue.client import (
    AsyncClient,
    Client,
    Job,
    NoSuchJob,
    QueueError,
    StaleReceipt,
    TooMany,
    TransportError,
    Unauthorized,
    Unavailable,
)
from delayqueue.client.api_request import Answer, ApiRequest, conversation
from delayqueue.client.times import Seconds
from faults.proxy import Proxy
from tests.certificates import make
from tests.client.conftest import Caller, at_work
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer, free_port, python
from tests.waiting import PATIENCE_S, until, until_async

Kind = type[Client | AsyncClient]
TOKEN: Final = "swordfish-swordfish"
THREADS: Final = 4
DONE: Final = b'{"code":0,"message":"ok","data":null}'


@pytest.fixture
async def client(kind: Kind, proxy: Proxy) -> AsyncIterator[Caller]:
    """Through the proxy, with a connection that is open already."""
    caller = Caller(kind(f"http://{proxy.address}", timeout=6))
    await caller.topics()
    yield caller
    await caller.close()


async def test_a_push_whose_answer_was_lost_is_repeated(
    client: Caller, proxy: Proxy, topic: str
) -> None:
    proxy.drop_next_answers()
    job_id = await client.push(topic)
    assert (await client.pop(topic, wait=20)).id == job_id
    assert await client.pop(topic, wait=0) is None


async def test_a_finish_whose_answer_was_lost_is_done(
    client: Caller, proxy: Proxy, topic: str
) -> None:
    await client.push(topic)
    job = await client.pop(topic, wait=20)
    proxy.drop_next_answers()
    await client.finish(job)  # the repetition finds that the job is gone
    assert await client.get(job.id) is None


async def test_many_finishes_whose_answer_was_lost_are_done(
    client: Caller, proxy: Proxy, topic: str
) -> None:
    await client.push_many([Job(topic=topic) for _ in range(3)])
    late, *held = await client.pop_many(topic, count=3, wait=20)
    await client.release(late, delay=0)
    await client.pop(topic, wait=20)
    proxy.drop_next_answers()
    codes = [one.code for one in await client.finish_many([late, *held])]
    assert codes == [StaleReceipt.code, 0, 0]


async def test_a_pop_whose_answer_was_lost_is_not_repeated(
    client: Caller, proxy: Proxy, topic: str
) -> None:
    for _ in range(2):
        await client.push(topic)
    proxy.drop_next_answers()
    with pytest.raises(TransportError):
        await client.pop(topic, wait=20)
    (counts,) = [one for one in await client.topics() if one.topic == topic]
    assert (counts.ready, counts.reserved) == (1, 1)


async def test_an_idle_connection_that_was_closed_is_not_used(
    client: Caller, proxy: Proxy, topic: str
) -> None:
    proxy.cut()
    await asyncio.sleep(0.05)  # for the reset to arrive
    assert await client.pop(topic, wait=0) is None


async def test_a_connection_that_was_closed_while_the_loop_was_blocked_is_not_used(
    kind: Kind,
) -> None:
    """A kick is not repeated: it would raise TransportError, although the server is there."""
    may_close, has_closed = threading.Event(), threading.Event()

    def serve() -> None:
        for _ in range(2):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(DONE) + DONE
                )
                may_close.wait()
            has_closed.set()

    with socket.create_server((LOOPBACK, 0)) as listener:
        listener.settimeout(30)
        threading.Thread(target=serve, daemon=True).start()
        client = Caller(kind(f"http://{LOOPBACK}:{listener.getsockname()[1]}"))
        await client.kick("a")
        may_close.set()
        assert has_closed.wait(30)  # the loop hears nothing meanwhile
        await client.kick("a")
        await client.close()


async def test_a_server_that_is_not_there_is_named(kind: Kind) -> None:
    url = f"http://{LOOPBACK}:{free_port()}/queue"
    client = Caller(kind(url, retries=1))
    with pytest.raises(TransportError, match=url):
        await client.push("mail")
    await client.close()


def test_an_error_without_words_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ConnectionAbortedError

    monkeypatch.setattr("socket.create_connection", refuse)
    with (
        Client(f"http://{LOOPBACK}:1", retries=0) as client,
        pytest.raises(TransportError, match=r": ConnectionAbortedError$"),
    ):
        client.push("mail")


async def test_a_server_that_is_silent_is_given_up(client: Caller, proxy: Proxy) -> None:
    proxy.half_open()
    with pytest.raises(TransportError):
        await asyncio.wait_for(client.kick_topic("none"), PATIENCE_S)


def test_a_fork_and_its_parent_use_connections_of_their_own(server: QueueServer) -> None:
    """As under gunicorn --preload: on one connection each would read answers to the other."""
    program = """
import os, sys
from delayqueue import Client
queue = Client(sys.argv[1])
queue.topics()  # leaves a connection
child = os.fork()
try:
    for number in range(100):
        job_id = queue.push("fork", str(number), delay=60)
        assert queue.get(job_id).body == str(number)
finally:
    if not child:
        os._exit(1 if sys.exc_info()[0] else 0)
assert os.waitpid(child, 0)[1] == 0
"""
    ended = python("-c", program, server.url)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # nobody closes the first loop's connection
def test_one_loop_after_the_other_may_use_a_client(server: QueueServer, topic: str) -> None:
    """As where each call is made by asyncio.run()."""
    queue = AsyncClient(server.url, retries=0)

    async def push() -> str:
        return await queue.push(topic, delay=60)

    assert asyncio.run(push()) != asyncio.run(push())
    asyncio.run(queue.close())
    gc.collect()  # warns now, and not in another test


def test_loops_that_run_at_the_same_time_may_share_a_client(
    server: QueueServer, topic: str
) -> None:
    """As async views of Django do in the threads of a WSGI server."""
    queue, pushed = AsyncClient(server.url, retries=0), list[str]()
    together = threading.Barrier(THREADS)

    async def push_many() -> None:
        together.wait(60)
        for _ in range(20):
            pushed.extend(await asyncio.gather(*(queue.push(topic, delay=600) for _ in range(5))))
        await queue.close()

    with ThreadPoolExecutor(THREADS) as threads:
        for ended in [threads.submit(asyncio.run, push_many()) for _ in range(THREADS)]:
            ended.result(120)
    with Client(server.url) as other:
        assert len(other.list_jobs(topic, limit=1000).jobs) == len({*pushed}) == THREADS * 100


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # nobody closes the first loop's connection
def test_a_loop_that_has_ended_is_not_kept(server: QueueServer, topic: str) -> None:
    queue, loops = AsyncClient(server.url, retries=0), list[Any]()

    async def push() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await queue.push(topic, delay=60)

    for _ in range(3):
        asyncio.run(push())
    gc.collect()
    assert [loop() is not None for loop in loops] == [False, False, True]
    asyncio.run(queue.close())
    gc.collect()


def test_the_loop_may_be_uvloops(server: QueueServer, topic: str) -> None:
    """As under uvicorn, and so in most applications of FastAPI."""
    worker, handled = Worker(server.url), set[str]()

    @worker.on(topic)
    async def handle(job: ReservedJob) -> None:
        handled.add(job.id)

    async def push_and_work() -> None:
        async with at_work(worker), AsyncClient(server.url) as queue:
            pushed = await asyncio.gather(*(queue.push(topic) for _ in range(3)))
            await until(lambda: handled == {*pushed})

    uvloop.run(push_and_work())


async def test_a_token_lets_in(
    kind: Kind, processes: Processes, redis_server: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = processes.server(redis_server, auth_tokens=f"produce:{TOKEN}")
    for token in (None, "guessed"):
        stranger = Caller(kind(server.url, token=token))
        with pytest.raises(Unauthorized):
            await stranger.push("t")
        await stranger.close()
    known = Caller(kind(server.url, token=TOKEN))
    assert await known.push("t")
    await known.close()
    monkeypatch.setenv("DELAYQUEUE_URL", server.url)
    monkeypatch.setenv("DELAYQUEUE_TOKEN", TOKEN)
    of_environment = Caller(kind())
    assert await of_environment.push("t")
    await of_environment.close()
    server.close()


async def test_a_server_with_a_certificate_is_reached_by_who_trusts_it(
    kind: Kind,
    processes: Processes,
    redis_server: StoreServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = make(tmp_path, "server")
    server = processes.server(redis_server, own.context(), tls_cert=own.cert, tls_key=own.key)
    stranger = Caller(kind(server.url, retries=0))
    with pytest.raises(TransportError, match="certificate"):
        await stranger.push("t")
    await stranger.close()
    monkeypatch.setenv("SSL_CERT_FILE", str(own.cert))
    trusting = Caller(kind(server.url))
    for _ in range(2):
        assert await trusting.push("t", "x" * 300_000)
    await trusting.close()
    server.close()


async def test_a_call_that_is_cancelled_while_it_connects_leaves_no_socket_open() -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:  # connections wait there for ever
        client = AsyncClient(f"http://{LOOPBACK}:{listener.getsockname()[1]}")
        for turns in range(12):
            calling = asyncio.create_task(client.pop("t"))
            for _ in range(turns):
                await asyncio.sleep(0)
            calling.cancel()
            await asyncio.wait([calling])
        await client.close()
        for _ in range(10):  # transports close in the next turns
            await asyncio.sleep(0)
    gc.collect()  # warns of sockets


async def test_a_poll_that_is_stopped_gets_the_job_that_is_on_its_way() -> None:
    job = {"topic": "t", "id": "a", "body": "", "attempt": 1, "receipt": "r-1", "due": 1}
    body = json.dumps({"code": 0, "message": "ok", "data": [job]}).encode()
    asked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()  # to the end: the client has stopped the poll
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    async with await asyncio.start_server(serve, LOOPBACK) as listening:
        host, port = listening.sockets[0].getsockname()
        async with AsyncClient(f"http://{host}:{port}") as client:
            polling = asyncio.create_task(client.pop_many("t", count=1, wait=30))
            await asked.wait()
            client.stop_polls()
            assert [each.id for each in await polling] == ["a"]


@pytest.mark.parametrize("is_secure", [False, True])
async def test_a_poll_that_is_stopped_takes_no_more_jobs(
    processes: Processes,
    redis_server: StoreServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_secure: bool,
) -> None:
    own = make(tmp_path, "server")
    monkeypatch.setenv("SSL_CERT_FILE", str(own.cert))
    tls = {"tls_cert": own.cert, "tls_key": own.key} if is_secure else {}
    server = processes.server(redis_server, own.context() if is_secure else None, **tls)
    async with AsyncClient(server.url) as client:
        polling = asyncio.create_task(client.pop("t", wait=60, worker="one"))
        await until_async(lambda: is_seen(client, "one"))
        client.stop_polls()
        with pytest.raises(TransportError, match="closed before the answer"):
            await polling
        await client.push("t")
        job = await client.pop("t", wait=20)
        assert job is not None
        assert job.attempt == 1
        client.stop_polls()  # none waits
        await client.finish(job)
    server.close()


async def is_seen(client: AsyncClient, worker: str) -> bool:
    return worker in [one.name for one in await client.workers()]


def refusal(retry_after: str | None, error: type[QueueError] = TooMany) -> Answer:
    envelope = {"code": error.code, "message": "no", "data": None}
    return Answer(error.status, json.dumps(envelope).encode(), retry_after)


def test_while_the_store_is_away_a_call_that_may_be_repeated_is_made_again() -> None:
    call = ApiRequest("/push", {}, read=str, repeatable=True)
    talk = conversation(call, retries=2)
    next(talk)
    pauses_s = [talk.send(refusal(None, Unavailable))[0] for _ in range(2)]
    assert pauses_s == [0.1, 0.4]
    with pytest.raises(Unavailable):
        talk.send(refusal(None, Unavailable))
    talk = conversation(ApiRequest("/pop", {}, read=str), retries=2)
    next(talk)
    with pytest.raises(Unavailable):
        talk.send(refusal(None, Unavailable))


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_proxy_that_got_no_answer_from_the_server_is_no_answer(status: int) -> None:
    page = Answer(status, b"<html><center>nginx</center></html>")
    talk = conversation(ApiRequest("/finish", {}, read=str, repeatable=True), retries=1)
    next(talk)
    assert talk.send(page)[0] > 0
    with pytest.raises(TransportError, match=f"no answer from the server: HTTP status {status}"):
        talk.send(page)
    talk = conversation(ApiRequest("/pop", {}, read=str), retries=1)
    next(talk)
    with pytest.raises(TransportError):
        talk.send(page)


def test_a_call_that_was_too_many_is_made_again_when_the_server_says() -> None:
    call = ApiRequest("/pop", {}, read=str)  # which must not be repeated
    talk = conversation(call, retries=3)
    assert next(talk) == (0, call)
    assert talk.send(refusal("3")) == (3, call)
    for no_number in (None, "soon"):
        assert talk.send(refusal(no_number)) == (0.1, call)
    with pytest.raises(StopIteration, match="done"):
        talk.send(Answer(200, b'{"code":0,"message":"ok","data":"done"}'))


def test_a_job_that_is_gone_was_not_ended_by_a_call_that_was_too_many() -> None:
    call = ApiRequest("/finish", {}, read=str, repeatable=True, gone_is_done=True)
    talk = conversation(call, retries=1)
    next(talk)
    talk.send(refusal("0"))
    with pytest.raises(NoSuchJob):
        talk.send(refusal(None, NoSuchJob))


@pytest.mark.parametrize(("retries", "retry_after_s"), [(0, 3), (2, 11)])
def test_a_longer_wait_is_for_the_caller_to_decide(retries: int, retry_after_s: float) -> None:
    talk = conversation(ApiRequest("/push", {}, read=str, repeatable=True), retries)
    next(talk)
    with pytest.raises(TooMany) as raised:
        talk.send(refusal(str(retry_after_s)))
    assert raised.value.retry_after_s == retry_after_s


@pytest.mark.parametrize(
    ("length", "expected_s"),
    [("10m", 600), ("1.5h", 5400), ("500ms", 0.5), (2.0, 2), (timedelta(minutes=1), 60)],
)
def test_a_length_of_time_is_written_as_everywhere(length: Seconds, expected_s: float) -> None:
    job = Job(topic="t", delay=length, retry=[length], retain=length, expire=length, ttr=length)
    request = job.request()
    assert request["delay"] == request["retain"] == request["expire"] == expected_s
    assert json.dumps(request["ttr"]) == json.dumps(expected_s)  # 60 is not sent as 60.0
    assert request["retry"] == {"delays": [length if isinstance(length, str) else expected_s]}
    with pytest.raises(ValueError, match="parsecs"):
        Job(topic="t", delay="10 parsecs").request()
    with pytest.raises(TypeError, match="True is not a length of time"):
        Job(topic="t", delay=True).request()


@pytest.mark.parametrize("error", QueueError.__subclasses__())
def test_every_code_is_raised_as_its_error_with_the_servers_words(error: type[QueueError]) -> None:
    answer = {"code": error.code, "message": "the words", "data": None}
    talk = conversation(ApiRequest("/get", {}, read=str), retries=0)
    next(talk)
    with pytest.raises(error, match="the words"):
        talk.send(Answer(error.status, json.dumps(answer).encode()))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("localhost:9277", "no scheme"),
        ("ftp://host", "another scheme"),
        ("http://", "no host"),
        ("http://host:x", "a port that is no number"),
        ("http://host:0", "no port"),
        ("http://host:65536", "a port too large"),
        ("http://[::1", "an open bracket"),
        ("http://host:9277?tls=no", "a query"),
        ("http://host:9277/queue?", "a query without a word"),
        ("http://host:9277#here", "a fragment"),
    ],
)
def test_a_url_that_is_none_or_has_a_part_that_means_nothing_is_refused(
    kind: Callable[[str], object], url: str, reason: str
) -> None:
    more = ", without ? and #" if re.search("[?#]", url) else ""
    says = f"URL {url}: must be http://HOST:PORT or https://HOST:PORT{more}"
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        kind(url)


def test_a_variable_with_a_mistake_is_named(
    kind: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELAYQUEUE_TOKEN", "a\nb")
    with pytest.raises(ValueError, match=r"^DELAYQUEUE_TOKEN: must be printable ASCII$"):
        kind("http://host")
    monkeypatch.setenv("DELAYQUEUE_URL", "http://shop:secret@host:x")
    with pytest.raises(ValueError, match=r"^DELAYQUEUE_URL=http://\*\*\*@host:x: must be http"):
        kind()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"timeout": 0}, "timeout 0: must be more than 0 seconds"),
        ({"timeout": -1}, "timeout -1: must be more than 0 seconds"),
        ({"retries": -1}, "retries -1: must be at least 0"),
    ],
)
def test_a_client_that_could_not_send_is_refused(
    kind: Callable[..., object], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        kind("http://host", **options)


async def test_a_password_in_the_url_is_sent_to_the_server_and_shown_to_nobody(
    kind: Kind, processes: Processes, redis_server: StoreServer
) -> None:
    """The server takes a token as a password of Basic, and so does what stands before it."""
    server = processes.server(redis_server, auth_tokens=f"produce:{TOKEN}")
    url = server.url.replace("http://", "http://shop%40home:{}@")
    client = Caller(kind(url.format(TOKEN), token=""))
    assert await client.push("t")
    await client.close()
    stranger = Caller(kind(url.format("hunter2"), token=""))
    with pytest.raises(Unauthorized):
        await stranger.push("t")
    server.kill()
    with pytest.raises(TransportError) as lost:
        await stranger.push("t")
    await stranger.close()
    assert "hunter2" not in str(lost.value)
    for wrong in (f"http://shop:{TOKEN}@host:x", f"http://shop:{TOKEN}@host?a"):
        with pytest.raises(ValueError, match=r"^URL http://\*\*\*@host.*: must be") as refused:
            kind(wrong)
        assert TOKEN not in str(refused.value)


def test_a_password_and_a_token_are_not_both_sent(
    kind: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    says = "it has a password, and there is a token, which takes its place: give one of them"
    with pytest.raises(ValueError, match=says):
        kind("http://shop:secret@host", token=TOKEN)
    monkeypatch.setenv("DELAYQUEUE_TOKEN", TOKEN)
    with pytest.raises(ValueError, match=says):
        kind("http://shop:secret@host")
