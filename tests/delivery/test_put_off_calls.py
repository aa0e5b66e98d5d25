"""A call that waits for a place at its host keeps its due time: it is told, and how late it was."""

import asyncio

from tests.api_client import Json
from tests.figures import grown, scrape
from tests.processes import LOOPBACK
from tests.waiting import until_async

from .conftest import Shop
from .receiver import Answer, receiving

PER_HOST = 2  # call_concurrency of the server; as many wait in the process
LATE_S = 1.0


async def test_who_waits_for_a_place_is_as_late_as_it_is(shop: Shop) -> None:
    before, goes_on = await scrape(shop.api), asyncio.Event()
    shop.receiver.says(shop.topic, Answer(hold=goes_on))
    ids = [f"{shop.topic}-{n}" for n in range(2 * PER_HOST + 1)]
    for one in ids:
        await shop.push(one, call={"url": shop.receiver.url(shop.topic)})
    dues = {one: (await shop.job(one))["due"] for one in ids}
    put_off: dict[str, float] = {}

    async def is_late() -> bool:
        for one in ids:
            job = await shop.job(one)
            assert (job["due"], job["delay"]) == (dues[one], int(dues[one]))
            if job["state"] == "delayed":
                put_off[one] = job["put_off_until"] - job["due"]
            else:
                assert "put_off_until" not in job
        return any(each > LATE_S for each in put_off.values())

    await until_async(is_late)
    goes_on.set()
    called_at = dict[str, float]()
    for one in ids:
        [call] = (await shop.becomes("finished", one))["results"]
        called_at[one] = call["started"]
    after = await scrape(shop.api)
    assert grown(before, after, "delayqueue_call_lateness_seconds_count") == len(ids)
    told_s = grown(before, after, "delayqueue_call_lateness_seconds_sum")
    real_s = sum(called_at[one] - dues[one] for one in ids)
    assert real_s - max(put_off.values()) / 2 < told_s < real_s + 1


async def test_who_waits_for_which_host_and_port_is_told_and_other_ports_are_called(
    shop: Shop,
) -> None:
    goes_on, host = asyncio.Event(), f"{LOOPBACK}:{shop.receiver.port}"
    shop.receiver.says(shop.topic, Answer(hold=goes_on))
    ids = [f"{shop.topic}-{n}" for n in range(3 * PER_HOST + 1)]
    for one in ids:
        await shop.push(one, call={"url": shop.receiver.url(shop.topic)})

    async def told(host: str) -> Json:
        stats = (await shop.api.call("/stats", {})).ok()
        found = [one for one in stats["calls"] if one["host"] == host]
        assert stats["called"] >= sum(one["waiting"] for one in stats["calls"])
        return found[0] if found else {}

    async def all_but_those_with_a_place_wait() -> bool:
        found = await told(host)
        counts = (found.get("calling"), found.get("waiting"))
        # one that is just being tried again is in neither
        return counts == (PER_HOST, len(ids) - PER_HOST) and bool(found["next_try"])

    await until_async(all_but_those_with_a_place_wait)
    waiting_since = (await told(host))["waiting_since"]
    assert waiting_since in [(await shop.job(one))["due"] for one in ids]
    async with receiving() as other:
        await shop.push(f"{shop.topic}-other", call={"url": other.url("x")})
        await shop.becomes("finished", f"{shop.topic}-other")
        other_host = f"{LOOPBACK}:{other.port}"

        async def is_told() -> bool:
            return bool((await told(other_host)).get("succeeded") == 1)

        await until_async(is_told)
        assert (await told(other_host))["waiting_since"] is None
    goes_on.set()
    for one in ids:
        await shop.becomes("finished", one)

    async def nobody_waits() -> bool:
        return bool((await told(host))["waiting"] == 0)

    await until_async(nobody_waits)
