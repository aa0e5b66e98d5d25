"""What webhooks send, what their answers mean, and which addresses they never reach."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from ipaddress import ip_address, ip_network
from typing import Any, Final

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from delayqueue.delivery import webhook
from delayqueue.delivery.addresses import AddressGuard, Resolver
from delayqueue.delivery.outcome import RESULT_BYTES, TOO_LONG, Event, WebhookOutcome
from delayqueue.delivery.webhook import Webhooks, header_text, sign
from delayqueue.domain.subscriber import Subscriber
from tests.api_client import open_api
from tests.processes import LOOPBACK, Processes, StoreServer
from tests.waiting import until, until_async

from .conftest import Shop, results
from .receiver import SECRET, Answer, Receiver

HERE: Final = ip_network("127.0.0.1/32")
NOT_PUBLIC: Final = "is not a public address"

# what other libraries compute for the specification's example
EXAMPLE_SECRET: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EXAMPLE: Final = ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
EXAMPLE_SIGNATURE: Final = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def job(job_id: str = "j", body: bytes = b"{}") -> Event:
    return Event("t", job_id, body, 1, "", 0, 1000, None)


async def call(
    url: str, event: Event | None = None, *, allowed: bool = True, **given: Any
) -> WebhookOutcome:
    """The outcome of one call."""
    async with Webhooks.open(AddressGuard([HERE] if allowed else [])) as webhooks:
        settings: dict[str, Any] = {"name": "s", "topic": "t", "url": url, "timeout_ms": 60_000}
        return await webhooks.call(Subscriber(**settings | given), event or job())


def test_the_signature_is_that_of_the_specification() -> None:
    assert sign(EXAMPLE_SECRET, *EXAMPLE) == EXAMPLE_SIGNATURE


@pytest.mark.parametrize(
    ("job_id", "sent"),
    [
        ("order-1", "order-1"),
        ("a.b", "a%2Eb"),  # the parts of what is signed are joined with full stops
        ("a\r\nX-Evil: 1", "a%0D%0AX-Evil:%201"),  # no header of its own
        ("100%", "100%25"),
        ("排队", "%E6%8E%92%E9%98%9F"),
        ("\x00", "%00"),
    ],
)
async def test_an_id_is_sent_so_that_it_cannot_be_mistaken(
    receiver: Receiver, job_id: str, sent: str
) -> None:
    assert header_text(job_id) == sent
    assert (await call(receiver.url("x"), job(job_id), secret=SECRET)).succeeded
    (came,) = receiver.calls
    assert (came.id, came.is_signed()) == (sent, True)
    assert "X-Evil" not in came.headers


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"a":1}', "application/json"),
        (b"trade_no=1&status=ok", "text/plain; charset=utf-8"),
        (b"", "text/plain; charset=utf-8"),
        (b"[" * 100_000, "text/plain; charset=utf-8"),  # too deep to look into
        (b"[" * 100_000 + b"]" * 100_000, "text/plain; charset=utf-8"),
        (b'"\xff"', "application/octet-stream"),
    ],
)
async def test_the_content_type_says_whether_it_is_json(
    receiver: Receiver, body: bytes, kind: str
) -> None:
    assert (await call(receiver.url("x"), job(body=body))).succeeded
    (came,) = receiver.calls
    assert (came.headers["Content-Type"], came.body) == (kind, body)


@pytest.mark.parametrize(
    ("status", "succeeded"),
    [(200, True), (204, True), (299, True), (301, False), (302, False), (400, False), (503, False)],
)
async def test_any_2xx_is_success_and_a_redirect_is_not_followed(
    receiver: Receiver, status: int, *, succeeded: bool
) -> None:
    url = receiver.says("x", Answer(status, headers={"Location": receiver.url("elsewhere")}))
    outcome = await call(url)
    assert outcome.succeeded == succeeded
    assert receiver.paths == ["x"]


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("7", 7),
        ("0", 0),
        ("9" * 400, 86_400),  # no longer than a day
        ("a date", 5000),
        ("Mon, 01 Jan 2001 00:00:00 GMT", 0),
        ("soon", 0),
        ("٧", 0),  # HTTP has ASCII digits only
        ("-5", 0),
    ],
)
async def test_retry_after_is_understood(receiver: Receiver, value: str, wait_s: int) -> None:
    asked_s = time.time()
    said = formatdate(asked_s + wait_s, usegmt=True) if value == "a date" else value
    url = receiver.says("x", Answer(503, headers={"Retry-After": said}))
    outcome = await call(url)
    passed_s = time.time() - asked_s + 1 if value == "a date" else 0  # a date has whole seconds
    assert wait_s - passed_s <= outcome.retry_after_ms / 1000 <= wait_s


@pytest.mark.parametrize("form", ["%a %b %d %H:%M:%S %Y", "%A, %d-%b-%y %H:%M:%S GMT"])
async def test_an_old_form_of_a_date_is_utc_wherever_the_server_is(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Shanghai")
        time.tzset()
        said = time.strftime(form, time.gmtime(time.time() + 5000))
        url = receiver.says("x", Answer(503, headers={"Retry-After": said}))
        outcome = await call(url)
    time.tzset()
    assert 4900 <= outcome.retry_after_ms / 1000 <= 5000


async def test_a_long_answer_is_cut_off(receiver: Receiver) -> None:
    outcome = await call(receiver.says("x", Answer(500, "é" * 10 * RESULT_BYTES)))
    assert outcome.message == "500 " + "é" * (RESULT_BYTES // 2)
    assert outcome.lacks == TOO_LONG


@pytest.mark.parametrize(
    ("expect", "status", "text", "succeeded", "message"),
    [
        ("success", 200, "success", True, "200 success"),
        ("success", 500, "success", False, "500 success"),
        ("success", 200, " success\n", True, "200 success"),
        ("success", 200, "unsuccessful", False, "not success: 200 unsuccessful"),
        ("success", 200, "SUCCESS", False, "not success: 200 SUCCESS"),
        ("success", 200, "", False, "not success: 200"),
        ("*SUCCESS*", 200, "<xml>SUCCESS</xml>", True, "200 <xml>SUCCESS</xml>"),
        ("*SUCCESS*", 200, "<xml>FAIL</xml>", False, "not *SUCCESS*: 200 <xml>FAIL</xml>"),
        ("**", 200, "**", True, "200 **"),
        ("", 200, "whatever", True, "200 whatever"),
    ],
)
async def test_an_answer_must_be_what_is_expected(
    receiver: Receiver, expect: str, status: int, text: str, *, succeeded: bool, message: str
) -> None:
    outcome = await call(receiver.says("x", Answer(status, text)), expect=expect)
    assert (outcome.succeeded, outcome.message) == (succeeded, message)


async def test_who_does_not_answer_in_time_has_failed(receiver: Receiver) -> None:
    outcome = await call(receiver.says("x", Answer(hold=asyncio.Event())), timeout_ms=200)
    assert outcome == WebhookOutcome(succeeded=False, message="timeout: 0.2 s")


async def test_a_trial_takes_no_longer_than_somebody_waits_for_it(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "LONGEST_TRIAL_MS", 200)
    url = receiver.says("x", Answer(hold=asyncio.Event()))
    async with Webhooks.open(AddressGuard([HERE])) as webhooks:
        tried = await webhooks.trial(Subscriber(name="s", topic="t", url=url), "")
    assert tried.message == "timeout: 0.2 s"


async def test_a_closed_port_is_a_failure_that_says_so() -> None:
    with socket.socket() as closed:
        closed.bind((LOOPBACK, 0))
        outcome = await call(f"http://{LOOPBACK}:{closed.getsockname()[1]}")
    assert not outcome.succeeded
    assert "Cannot connect" in outcome.message


REFUSED: Final = [
    ("127.0.0.1", "loopback"),
    ("127.8.8.8", "loopback"),
    ("0.0.0.0", "this host: reaches loopback"),
    ("10.1.2.3", "private"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.168.1.1", "private"),
    ("169.254.169.254", "the metadata of clouds"),
    ("168.63.129.16", "Azure's own, for its machines"),
    ("::ffff:168.63.129.16", "mapped, Azure's own"),
    ("100.64.0.1", "CGNAT"),
    ("100.127.255.255", "CGNAT"),
    ("192.0.0.170", "protocol assignments"),
    ("192.0.2.1", "documentation"),
    ("198.19.255.255", "benchmarks"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.250", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "broadcast"),
    ("::1", "loopback"),
    ("::", "unspecified"),
    ("fe80::1", "link-local"),
    ("fec0::1", "site-local"),
    ("fc00::1", "unique local"),
    ("fd12:3456::1", "unique local"),
    ("ff02::1", "multicast"),
    ("2001:db8::1", "documentation"),
    ("2001::1", "Teredo"),
    ("::ffff:127.0.0.1", "mapped loopback"),
    ("::ffff:10.0.0.1", "mapped private"),
    ("::ffff:169.254.169.254", "mapped metadata"),
    ("::127.0.0.1", "compatible with IPv4"),
    ("64:ff9b::7f00:1", "NAT64 of loopback"),
    ("64:ff9b::a00:1", "NAT64 of private"),
    ("64:ff9b:1::a00:1", "local NAT64"),
    ("2002:7f00:1::", "6to4 of loopback"),
    ("2002:c0a8:101::", "6to4 of private"),
]
REACHED: Final = [
    "1.1.1.1",
    "168.63.129.17",
    "100.128.0.1",
    "172.32.0.1",
    "2606:4700::1111",
    "64:ff9b::101:101",
]


@pytest.mark.parametrize(("address", "_why"), REFUSED)
async def test_an_address_that_is_not_public_is_refused(address: str, _why: str) -> None:
    assert not AddressGuard([]).permits(ip_address(address))
    host = f"[{address}]" if ":" in address else address
    outcome = await call(f"http://{host}:9/", allowed=False)
    assert not outcome.succeeded
    assert NOT_PUBLIC in outcome.message


@pytest.mark.parametrize("address", REACHED)
def test_a_public_address_is_reached(address: str) -> None:
    assert AddressGuard([]).permits(ip_address(address))


@pytest.mark.parametrize("host", ["2130706433", "0177.0.0.1", "0x7f.1", "127.1", "localhost"])
async def test_another_way_to_write_loopback_is_refused(receiver: Receiver, host: str) -> None:
    outcome = await call(f"http://{host}:{receiver.port}/x", allowed=False)
    assert not outcome.succeeded
    assert receiver.calls == []


def test_what_is_allowed_is_allowed_in_every_form() -> None:
    guard = AddressGuard([ip_network("10.0.0.0/8"), ip_network("fd00::/16")])
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd00::5"):
        assert guard.permits(ip_address(address))
    for address in ("11.0.0.1", "172.16.0.1", "fd01::5", "127.0.0.1"):
        assert guard.permits(ip_address(address)) == (address == "11.0.0.1")


class Fickle(AbstractResolver):
    """A name server that answers with a different address each time."""

    def __init__(self, *answers: str) -> None:
        self.left = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        address = self.left.pop(0)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
        ]

    async def close(self) -> None:
        """There is nothing to close."""


async def test_a_name_that_changes_its_answer_gains_nothing(receiver: Receiver) -> None:
    receiver.says("x", Answer(headers={"Connection": "close", "Set-Cookie": "of=one"}))
    names = Fickle(LOOPBACK, "127.0.0.2", "::ffff:127.0.0.1", "169.254.169.254", LOOPBACK)
    async with Webhooks.open(AddressGuard([HERE]), names) as webhooks:
        one = Subscriber(name="s", topic="t", url=f"http://fickle.example:{receiver.port}/x")
        outcomes = [await webhooks.call(one, job()) for _ in range(5)]
    assert [outcome.succeeded for outcome in outcomes] == [True, False, True, False, True]
    assert f"127.0.0.2 {NOT_PUBLIC}" in outcomes[1].message
    assert f"169.254.169.254 {NOT_PUBLIC}" in outcomes[3].message
    assert names.left == []
    assert not any("Cookie" in came.headers for came in receiver.calls)  # it may be another's host


class Lookups:
    """getaddrinfo with name servers one of which hangs; all names are this machine."""

    def __init__(self) -> None:
        self.answer = threading.Event()
        self.asked: list[str] = []
        self._real = socket.getaddrinfo

    def __call__(self, host: str, *rest: Any) -> Any:
        self.asked.append(host)
        if host == "hangs.example":
            self.answer.wait()
        if host == "starved.example":
            raise RuntimeError("can't start new thread")
        return self._real(LOOPBACK, *rest)


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lookups]:
    lookups = Lookups()
    monkeypatch.setattr(socket, "getaddrinfo", lookups)
    yield lookups
    lookups.answer.set()


async def test_calls_share_a_lookup_that_hangs_and_others_go_on(
    receiver: Receiver, lookups: Lookups
) -> None:
    def to(host: str, timeout_ms: int) -> Subscriber:
        url = f"http://{host}:{receiver.port}/x"
        return Subscriber(name=host, topic="t", url=url, timeout_ms=timeout_ms)

    begun: list[str] = []

    class Watched(Resolver):
        async def resolve(self, host: str, *args: Any, **more: Any) -> list[ResolveResult]:
            begun.append(host)
            return await super().resolve(host, *args, **more)

    async with Webhooks.open(AddressGuard([HERE]), Watched()) as webhooks:
        for _ in range(2):
            hanging = [webhooks.call(to("hangs.example", 100), job()) for _ in range(20)]
            assert not any(outcome.succeeded for outcome in await asyncio.gather(*hanging))
        assert (await webhooks.call(to("other.example", 60_000), job())).succeeded
        assert lookups.asked == ["hangs.example", "other.example"]
        waiting = asyncio.create_task(webhooks.call(to("hangs.example", 60_000), job()))
        await until(lambda: begun.count("hangs.example") == 41)
        lookups.answer.set()
        assert (await waiting).succeeded
        assert lookups.asked.count("hangs.example") == 1


async def test_a_lookup_that_cannot_begin_is_a_failure_that_says_so(
    receiver: Receiver, lookups: Lookups
) -> None:
    outcome = await call(f"http://starved.example:{receiver.port}/x")
    assert "can't start new thread" in outcome.message
    assert lookups.asked == ["starved.example"]


async def test_410_unsubscribes_and_the_job_waits_for_others(shop: Shop) -> None:
    shop.receiver.says("gone", Answer(410, "no more"))
    await shop.subscribe("gone")
    await shop.push()

    async def is_unsubscribed() -> bool:
        return not (await shop.api.call("/subscribers", {"topic": shop.topic})).ok()

    await until_async(is_unsubscribed)
    await shop.becomes("ready")
    await shop.subscribe("next")
    job = await shop.becomes("finished")
    assert list(results(job)) == ["next"]
    assert shop.receiver.paths == ["gone", "next"]


async def test_410_of_one_subscriber_leaves_the_others_their_verdict(shop: Shop) -> None:
    shop.receiver.says("gone", Answer(410))
    await shop.subscribe("gone")
    await shop.subscribe("stays", order=1)
    await shop.push()
    await shop.becomes("finished")
    assert shop.receiver.paths == ["gone", "stays"]


async def test_retry_after_is_obeyed(shop: Shop) -> None:
    shop.receiver.says("busy", Answer(429, headers={"Retry-After": "1"}), Answer(200))
    await shop.subscribe("busy", retry={"delays": [0]})
    await shop.push()
    await until(lambda: len(shop.receiver.calls) == 2)
    first, second = shop.receiver.calls
    assert second.at_s - first.at_s >= 1.0
    await shop.becomes("finished")


async def test_an_address_that_is_not_allowed_any_more_is_not_called(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, topic: str
) -> None:
    database = redis_server.new_database()
    wide = processes.server(redis_server, redis__db=database, webhook_allow="127.0.0.0/8")
    async with open_api(wide.url) as api:
        await Shop(api, receiver, topic).subscribe(
            "x", url="http://127.0.0.2:9/", retry={"delays": [0]}
        )
    wide.stop()
    narrow = processes.server(redis_server, redis__db=database, webhook_allow="127.0.0.1/32")
    async with open_api(narrow.url) as api:
        shop = Shop(api, receiver, topic)
        await shop.push()
        job = await shop.becomes("buried")
    assert f"127.0.0.2 {NOT_PUBLIC} and webhook_allow does not list it" in job["message"]
    narrow.close()
