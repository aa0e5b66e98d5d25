"""What the sections of a config file mean, and the messages about invalid ones."""

import json
from pathlib import Path
from typing import Final

import pytest

from delayqueue.config.ini import SHOWN_CHARS
from delayqueue.config.loading import load
from delayqueue.config.sections import LIMIT_KEYS, NO_HANDLERS
from delayqueue.config.startup import ConfigError, StartupError
from delayqueue.delivery.call_guard import check_declared_urls
from delayqueue.domain.call import Call
from delayqueue.domain.limit import Limit
from delayqueue.domain.schedule import CatchUp, Schedule
from delayqueue.domain.subscriber import Method, Subscriber

SECRET: Final = "whsec_" + "A" * 32
URL: Final = "http://h.example/x"
HEAD: Final = f"[subscriber s]\ntopic = t\nurl = {URL}\n"
PLAN: Final = "[schedule s]\ntopic = t\nevery = 1h\n"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return tmp_path / "dq.conf"


def planned(conf: Path, text: str) -> Schedule:
    """The one schedule of a file with this text."""
    conf.write_text(text, encoding="utf-8")
    [declared] = load(conf, {}).declared.schedules
    return declared.entry


def only(conf: Path, text: str) -> Subscriber:
    """The one subscriber of a file with this text."""
    conf.write_text(text, encoding="utf-8")
    sections = load(conf, {}).sections
    assert sections
    [declared] = sections.subscribers
    return declared.entry


def test_a_section_is_a_subscriber(conf: Path) -> None:
    text = (
        f"language = en\n[subscriber send invoice]\ntopic = order\norder = -5\nurl = `{URL}?a;b`\n"
        f"timeout = 1.5\nretry = 0s, 2m, 10\nconcurrency = 3\nsecret = {SECRET}\n"
    )
    assert only(conf, text) == Subscriber(
        name="send invoice",
        topic="order",
        order=-5,
        url=f"{URL}?a;b",
        timeout_ms=1500,
        retry_ms=(0, 120_000, 10_000),
        concurrency=3,
        secret=SECRET,
        declared=True,
    )


def test_a_subscriber_has_a_method_and_headers(conf: Path) -> None:
    found = only(conf, HEAD + 'method = PUT\nheaders = `{"X-Key": "a;b", "X-B": "c"}`\n')
    assert (found.method, found.headers) == (Method.PUT, (("X-Key", "a;b"), ("X-B", "c")))
    assert Subscriber.read(found.definition) == found
    assert "a;b" not in repr(found)


def test_a_schedule_has_a_section_too(conf: Path) -> None:
    text = (
        "[schedule daily report]\ntopic = report\ncron = 30 9 * * MON-FRI\ntz = Asia/Shanghai\n"
        'body = `{"n": 1}`\nttr = 5m\ncatch_up = all\ngroup = customer-7\n'
    )
    assert planned(conf, text) == Schedule(
        name="daily report",
        topic="report",
        cron="30 9 * * MON-FRI",
        tz="Asia/Shanghai",
        body='{"n": 1}',
        ttr_ms=300_000,
        catch_up=CatchUp.ALL,
        group="customer-7",
        declared=True,
    )


def test_a_schedule_has_a_call(conf: Path) -> None:
    of_call = (
        f'call = {URL}\ncall_method = GET\ncall_headers = `{{"X-Key": "abc"}}`\ncall_timeout = 5m\n'
        "call_expect = *ok*\ncall_give_up = yes\n"
    )
    found = planned(conf, PLAN + of_call)
    assert found.call == Call(
        url=URL,
        method=Method.GET,
        headers={"X-Key": "abc"},
        timeout_ms=300_000,
        expect="*ok*",
        give_up=True,
    )
    assert Schedule.read(found.definition) == found
    assert planned(conf, f"{PLAN}call = {URL}").call == Call(url=URL)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("", "FILE:3: [schedule s]: call: this server makes no calls; set calls = yes"),
        ("calls = yes", ""),
        (
            "calls = yes\ncall_allow = 10.0.0.0/8",
            f"FILE:4: [schedule s]: call = {URL}: call_allow does not list h.example",
        ),
    ],
    ids=["no calls", "allowed", "not listed"],
)
def test_a_start_refuses_a_call_that_is_forbidden(conf: Path, settings: str, message: str) -> None:
    conf.write_text(f"language = en\n{settings}\n{PLAN}call = {URL}\n", encoding="utf-8")
    config = load(conf, {})
    try:
        check_declared_urls(config)
    except StartupError as error:
        found = str(error).replace(str(conf), "FILE")
    else:
        found = ""
    assert found == message


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("retry = alipay", "retry_ms", (120_000, 600_000, 600_000, 3_600_000)),
        ("retry = 1d", "retry_ms", (86_400_000,)),
        ("timeout = 2m", "timeout_ms", 120_000),
        ("timeout = 300", "timeout_ms", 300_000),
        ("order =", "order", 0),  # empty means the default
    ],
)
def test_values_are_understood(conf: Path, line: str, field: str, value: object) -> None:
    found = getattr(only(conf, HEAD + line), field)
    assert (found[: len(value)] if isinstance(value, tuple) else found) == value


def test_limits_stand_under_their_topic(conf: Path) -> None:
    conf.write_text(
        "[limit pay out]\nrate = 0.5\n[limit b]\nconcurrency = 7\nburied_retain = 7d\n"
        "[limit c]\nburied_to = dead\n[limit d]\nmax_jobs = 10000\nwhen_full = drop_oldest\n",
        encoding="utf-8",
    )
    sections = load(conf, {}).sections
    assert sections
    assert sections.limits == {
        "pay out": Limit(rate=0.5, declared=True),
        "b": Limit(concurrency=7, buried_retain_ms=604_800_000, declared=True),
        "c": Limit(buried_to="dead", declared=True),
        "d": Limit(max_jobs=10_000, when_full="drop_oldest", declared=True),
    }


def test_a_definition_is_read_as_it_was_written(conf: Path) -> None:
    subscriber = only(conf, HEAD + f"secret = {SECRET}")
    assert Subscriber.read(subscriber.definition) == subscriber
    assert SECRET not in repr(subscriber)
    words = "expect = success\non_failure = continue\npayload = event\nretry = none"
    newer = only(conf, HEAD + words)
    assert (newer.expect, newer.on_failure, newer.payload) == ("success", "continue", "event")
    assert Subscriber.read(newer.definition) == newer


def test_a_definition_says_no_more_than_the_version_before_wrote(conf: Path) -> None:
    """So the same subscriber does not count as another one after an upgrade."""
    assert set(json.loads(only(conf, HEAD).definition)) == {
        "name",
        "topic",
        "order",
        "url",
        "handler",
        "timeout_ms",
        "retry_ms",
        "concurrency",
        "secret",
        "declared",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[subscriber]\ntopic = t", "FILE:1: [subscriber]: the name must have 1 to 128 bytes"),
        ("[topic x]", "FILE:1: [topic x]: unknown section; remove it"),
        (f"[subscriber s]\nurl = {URL}", "FILE:1: [subscriber s]: topic is missing"),
        ("[subscriber s]\ntopic = t", "FILE:1: [subscriber s]: url is missing"),
        ("[subscriber s]\ntopic = t\nhandler = a:b", f"FILE:3: handler: {NO_HANDLERS}"),
        (HEAD + "handler =", f"FILE:4: handler: {NO_HANDLERS}"),
        ("[schedule s]\nhandler = a:b", "FILE:2: handler: unknown key; a section takes topic, "),
        (HEAD + HEAD, "FILE:4: [subscriber s]: is in the file twice; choose another name"),
        (HEAD + "topic = u", "FILE:4: topic: set twice; keep one of them"),
        (
            HEAD + "color = red",
            (
                "FILE:4: color: unknown key; a section takes "
                "topic, order, url, method, headers, timeout, expect, retry, concurrency, secret, "
                "on_failure, payload"
            ),
        ),
        (
            "[subscriber s]\ntopic = a,b",
            "FILE:2: topic = a,b: must be one topic, at most 256 bytes",
        ),
        (
            "[subscriber s]\nurl = h.example",
            "FILE:2: url = h.example: must be http[s]://HOST[:PORT][/PATH], at most 2048 characters",
        ),
        (HEAD + "order = first", "FILE:4: order = first: must be a whole number from -1000000"),
        (
            "[limit t]",
            "FILE:1: [limit t]: give one of " + ", ".join(LIMIT_KEYS),
        ),
        ("[limit t]\nrate = 1\nwhen_full = drop_oldest", "FILE:1: [limit t]: when_full needs max_"),
        ("[limit t]\nmax_jobs = 0", "FILE:2: max_jobs = 0: must be a whole number from 1"),
        ("[limit t]\nmax_jobs = 1\nwhen_full = drop", "FILE:3: when_full = drop: must be"),
        ("[limit]\nrate = 1", "FILE:1: [limit]: the name must be one topic, at most 256 bytes"),
        ("[limit a,b]\nrate = 1", "FILE:1: [limit a,b]: the name must be one topic"),
        ("[limit t]\nrate = 1\n[limit t]\nrate = 2", "FILE:3: [limit t]: is in the file twice"),
        ("[limit t]\nburst = 5\nconcurrency = 1", "FILE:1: [limit t]: burst needs a rate"),
        ("[limit t]\nburied_retain = 0", "FILE:2: buried_retain = 0: must be longer than 0"),
        ("[limit t]\nrate = 0", "FILE:2: rate = 0: must be 0.001 to 100000 a second"),
        ("[limit t]\nrate = 10/s", "FILE:2: rate = 10/s: must be a number"),
        ("[limit t]\nconcurrency = 0", "FILE:2: concurrency = 0: must be a whole number from 1"),
        (HEAD + "timeout = 0", "FILE:4: timeout = 0: must be more than 0 and at most 300 seconds"),
        (
            HEAD + "retry = visa",
            "FILE:4: retry = visa: must be a preset (alipay, wechat), none, or at most 64 delays: ",
        ),
        (HEAD + "on_failure = go", "FILE:4: on_failure = go: must be one of bury, continue"),
        (HEAD + "payload = x", "FILE:4: payload = x: must be one of body, event"),
        (HEAD + "method = TRACE", "FILE:4: method = TRACE: must be one of POST, PUT, PATCH"),
        (HEAD + "headers = X-Key: hush", "FILE:4: headers: must be a JSON object of texts, as `{"),
        (HEAD + 'headers = `{"X": 1}`', "FILE:4: headers: must be a JSON object of texts"),
        (HEAD + "headers = " + "[" * 100_000, "FILE:4: headers: must be a JSON object of texts"),
        (
            HEAD + 'headers = `{"X": "hush\\r\\nHost: x"}`',
            "FILE:4: headers: the value of X must be visible ASCII characters",
        ),
        (HEAD + 'headers = `{"Host": "hush"}`', "FILE:4: headers: Host is set by the server"),
        (PLAN + "call_timeout = 5", "FILE:1: [schedule s]: call is missing, which is the URL"),
        (PLAN + "call = h.example", "FILE:4: call = h.example: must be http[s]://HOST"),
        (PLAN + "call = http://u:p@h/", "FILE:4: call = http://u:p@h/: must not have a user"),
        (PLAN + 'call_headers = `{"X": []}`', "FILE:4: call_headers: must be a JSON object"),
        (PLAN + "call_timeout = 301", "FILE:4: call_timeout = 301: must be more than 0 and at"),
        (HEAD + "retry = " + "1s," * 64 + "1s", "FILE:4: retry = "),
        (
            HEAD + "secret = hunter2",
            "FILE:4: secret: must be whsec_ and then 24 to 64 bytes as base64",
        ),
        ("[schedule s]\nevery = 5", "FILE:1: [schedule s]: topic is missing"),
        ("[schedule s]\ntopic = t", "FILE:1: [schedule s]: give one of cron, every"),
        (
            "[schedule s]\ntopic = t\ncron = * * * * *\nevery = 5",
            "FILE:1: [schedule s]: give one of cron, every",
        ),
        (
            "[schedule s]\ntopic = t\nevery = 1d\ntz = Asia/Shanghai",
            "FILE:1: [schedule s]: tz: is only for cron; every is counted from 1970 in UTC",
        ),
        ("[schedule s]\ncron = 61 * * * *", "FILE:2: cron = 61 * * * *: Bad minute: must be like"),
        ("[schedule s]\ntz = Mars", "FILE:2: tz = Mars: must be a time zone such as Asia/Shanghai"),
        ("[schedule s]\nevery = 0", "FILE:2: every = 0: must be 1 to 31622400 seconds"),
        ("[schedule s]\nttr = 500ms", "FILE:2: ttr = 500ms: must be 1 to 86400 whole seconds"),
        (
            f"[schedule s]\ngroup = {'x' * 251}",
            f"FILE:2: group = {'x' * SHOWN_CHARS}…: must be 1 to 250 bytes",
        ),
        ("[schedule s]\ncatch_up = x", "FILE:2: catch_up = x: must be one of skip, once, all"),
        (
            "[schedule s]\ntopic = t\nevery = 5\n[schedule s]",
            "FILE:4: [schedule s]: is in the file twice; choose another name",
        ),
        ("webhook_allow = 10.0.0.1/8", "FILE:1: webhook_allow = 10.0.0.1/8: must be networks"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(conf: Path, text: str, message: str) -> None:
    conf.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(conf, {})
    said = str(caught.value).replace(str(conf), "FILE")
    assert said.startswith(message)
    assert "hunter2" not in said
