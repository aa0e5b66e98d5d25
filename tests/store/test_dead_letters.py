"""Dead letters, page by page."""

from typing import Final

import pytest

from delayqueue.domain.access import EVERYWHERE
from delayqueue.store import listings
from delayqueue.store.listings import Listings
from tests.store.bucket import Bucket, a_moment, job

WHAT: Final = ("all",)


async def test_pages_hold_every_dead_letter_once_with_its_last_message(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listings, "ENTRIES_PER_CALL", 2)
    monkeypatch.setattr(listings, "MOST_LETTERS", 3)
    topics = ["t", "u", "v"]
    expected = {(topic, f"{topic}{number}") for topic in topics[:2] for number in range(5)}
    for topic, job_id in sorted(expected):
        await bucket.push(job(job_id, topic=topic))
        await bucket.bury(job_id, message="first")
    await bucket.kick("t0")
    await bucket.bury("t0", message="last")
    await bucket.push(job("a bystander", topic="v"))
    found, cursor, pages = [], "", 0
    while pages == 0 or cursor:
        letters, cursor = await Listings(bucket.store, EVERYWHERE).dead_letters(
            topics, WHAT, cursor
        )
        found += letters
        pages += 1
    assert pages > 2
    assert sorted((letter.topic, letter.id) for letter in found) == sorted(expected)
    messages = {letter.id: letter.message for letter in found}
    assert (messages["t0"], messages["u0"]) == ("last", "first")
    monkeypatch.setattr(listings, "MOST_LETTERS", len(expected))
    letters, cursor = await Listings(bucket.store, EVERYWHERE).dead_letters(topics, WHAT, "")
    assert (len(letters), cursor) == (len(expected), "")  # a full page that is the last one


async def test_a_page_that_leads_to_no_wanted_dead_letter_is_the_last_one(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listings, "ENTRIES_PER_CALL", 2)
    monkeypatch.setattr(listings, "MOST_LETTERS", 6)
    for number in range(10):
        await bucket.push(job(f"{number}"))
        await bucket.bury(f"{number}", message="rare" if number == 8 else "usual")
        await a_moment()  # the latest comes first

    async def page(message: str) -> tuple[list[str], bool]:
        letters, cursor = await Listings(bucket.store, EVERYWHERE).dead_letters(
            ["t"], WHAT, "", lambda letter: letter.message == message
        )
        return [letter.id for letter in letters], cursor != ""

    assert await page("rare") == (["8"], False)
    assert await page("usual") == (["9", "7", "6", "5", "4"], True)
