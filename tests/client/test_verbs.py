"""Every verb of both clients: what it asks, and what it makes of the answer; and jobs on a real server."""

import asyncio
import inspect
import json
import re
import time
from dataclasses import is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from delayqueue.client import (
    Client,
    Invalid,
    Job,
    Limits,
    NoSuchJob,
    StaleReceipt,
    WrongState,
)
from delayqueue.web.endpoints import ENDPOINTS
from scripts.fields import described
from tests.client.conftest import Caller
from tests.client.every_verb import CALLS, FAR, SCENE, Asked, covers
from tests.client.test_strangers import answered
from tests.waiting import until_async

HOUR = timedelta(hours=1)
PATHS: Final = {verb: make(Asked(), SCENE).path for verb, make in CALLS.items()}
MINUTE: Final = timedelta(minutes=1)
DUE: Final = datetime.fromtimestamp(FAR, UTC)
# for the arguments for which a name would not do
VALUES: Final[dict[str, Any]] = {
    **dict.fromkeys(("due", "start", "end", "after", "before"), DUE),
    **dict.fromkeys(("delay", "by", "length", "wait", "timeout", "ttr", "fallback"), MINUTE),
    **dict.fromkeys(("expire", "max_wait", "retain", "every", "step"), MINUTE),
    "job": SCENE.held,
    "jobs": [SCENE.held],
    "ids": ["a"],
    "tags": ["a"],
    "retry": "wechat",
}


def sent_by(verb: str) -> set[str]:
    """The fields of a request with every argument; its times are numbers."""
    asked: Any = Asked()
    arguments: dict[str, Any] = {}
    names: list[str] = []
    for argument in inspect.signature(getattr(Client, verb)).parameters.values():
        if argument.kind is argument.VAR_POSITIONAL:
            names.append("name")
        elif argument.name != "self":
            arguments[argument.name] = VALUES.get(argument.name, argument.name)
    if verb == "push_many":
        return {*asked.push_many([Job(topic="t", due=DUE)]).json[0]}
    if verb == "push":
        del arguments["due"]  # instead of a delay
    request = getattr(asked, verb)(*names, **arguments).json
    for given, sent in ((MINUTE, 60), (DUE, FAR)):
        assert [*request.values()].count(sent) == [*arguments.values()].count(given)
    return {*request}


@pytest.mark.parametrize("path", sorted({*PATHS.values()}))
def test_the_methods_of_an_endpoint_send_each_of_its_fields(path: str) -> None:
    sent = {name for verb, of in PATHS.items() if of == path for name in sent_by(verb)}
    assert sent == {name for name in described(path) if "." not in name}


# the examples of the others are results of a batch, or all pages
@pytest.mark.parametrize(
    "verb", [verb for verb in CALLS if not re.search("_(many|page|tag)$|^(push|delete)$", verb)]
)
def test_an_answer_is_read_to_the_last_member(verb: str) -> None:
    [data] = [one.answers for one in ENDPOINTS if one.path == PATHS[verb]]
    told = json.dumps({"code": 0, "message": "ok", "data": data}).encode()
    result = answered(CALLS[verb](Asked(), SCENE), told)
    if isinstance(data, dict) and not is_dataclass(result):  # one member is the result
        assert result in {None, *data.values()}
    else:
        assert covers(result, data)


async def test_a_get_waits_for_the_end(client: Caller, topic: str) -> None:
    job_id = await client.push(topic, retain=HOUR)
    began = time.monotonic()
    assert (await client.get(job_id, wait="0.3s")).state == "ready"
    assert time.monotonic() - began >= 0.3
    await client.finish(await client.pop(topic, wait=20), message="42")
    ended = await client.get(job_id, wait=30)
    assert (ended.state, ended.message) == ("finished", "42")


@pytest.mark.parametrize("retry", ["wechat", {"max": 1, "base": HOUR}, ["1h"]])
async def test_a_retry_schedule_is_kept(client: Caller, topic: str, retry: Any) -> None:
    await client.push(topic, retry=retry)
    job = await client.pop(topic, wait=20)
    assert await client.release(job, message="no luck") > time.time() + 1
    details = await client.get(job.id)
    assert (details.state, details.message) == ("delayed", "no luck")
    assert [attempt.message for attempt in details.attempts] == ["no luck"]


async def test_an_empty_id_is_no_id(client: Caller, topic: str) -> None:
    with pytest.raises(Invalid, match="id: must not be empty"):
        await client.push(topic, id="")
    assert await client.pop(topic, wait=0) is None


async def test_a_late_worker_changes_nothing(client: Caller, topic: str) -> None:
    await client.push(topic)
    late = await client.pop(topic, wait=20)
    await client.release(late, delay=0)
    present = await client.pop(topic, wait=20)
    for verb in (client.finish, client.touch, client.release, client.bury):
        with pytest.raises(StaleReceipt):
            await verb(late)
    assert await client.touch(present, ttr=50) > time.time() + 40
    await client.finish(present)
    with pytest.raises(NoSuchJob):
        await client.finish(present)


async def test_a_job_is_buried_and_kicked(client: Caller, topic: str) -> None:
    await client.push(topic)
    job = await client.pop(topic, wait=20)
    await client.bury(job, message="broken")
    page = await client.list_jobs(topic, state="buried")
    assert [(one.id, one.message) for one in page.jobs] == [(job.id, "broken")]
    await client.kick(job.id, body={"total": 3})
    again = await client.pop(topic, wait=20)
    assert (again.attempt, again.body) == (2, '{"total":3}')
    with pytest.raises(WrongState):
        await client.kick(job.id)


async def test_none_lifts_a_limit_and_what_is_left_out_stays(client: Caller, topic: str) -> None:
    limits = await client.limit(topic, rate=20, concurrency=8)
    assert limits == Limits(rate=20, burst=2, concurrency=8, declared=False)
    assert (await client.limit(topic, rate=None)).concurrency == 8
    assert await client.limit(topic, concurrency=None) == Limits(None, None, None, declared=False)


async def test_many_jobs_are_moved_and_kicked_together(client: Caller, topic: str) -> None:
    ids = [await client.push(topic, delay=HOUR, tags=[topic]) for _ in range(2)]
    assert await client.reschedule_tag(topic, by="-10m") == 2
    assert await client.reschedule(ids[0], due=DUE) == FAR
    outcomes = await client.reschedule_many([*ids, "never-pushed"], delay=HOUR, priority=6)
    assert [outcome.code for outcome in outcomes] == [0, 0, NoSuchJob.code]
    before = await client.get(ids[0])
    assert before.priority == 6
    moved = await client.reschedule(ids[0], by=timedelta(seconds=-60.5))
    assert moved == pytest.approx(before.due - 60.5, abs=0.01)
    assert await client.kick_tag(topic) == 0
    assert await client.kick_tag(topic, topic=topic, state="delayed") == 2
    outcomes = await client.kick_many([ids[0], "never-pushed"])
    assert [outcome.code for outcome in outcomes] == [WrongState.code, NoSuchJob.code]
    assert len(await client.pop_many(topic, count=2, wait=20)) == 2


async def test_threads_may_share_a_client(client: Caller, topic: str) -> None:
    await asyncio.gather(*(client.push(topic, str(number)) for number in range(40)))

    async def all_there() -> bool:
        (counts,) = [one for one in await client.topics() if one.topic == topic]
        return bool(counts.ready == 40)

    await until_async(all_there)
