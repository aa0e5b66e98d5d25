"""A text where a list is meant is refused, by type checkers and at run time: its letters are never meant."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from delayqueue import Client, Worker, outbox
from delayqueue.client import Job
from delayqueue.testing import Queue
from delayqueue.worker.handlers import Errors
from tests.client.conftest import Caller

worker = Worker()
queue = worker.client = Queue(worker)


@worker.task("mail")
def mail(to: str) -> None:
    """Send a mail."""


# each with the argument that the message names
TEXTS: Final[dict[str, tuple[str, Callable[[], object]]]] = {
    "push": (
        "tags",
        lambda: queue.push("mail", tags="order:1"),  # type: ignore[arg-type]
    ),
    "push bytes": (
        "tags",
        lambda: queue.push("mail", tags=b"order:1"),  # type: ignore[arg-type]
    ),
    "push_many": (
        "tags",
        lambda: queue.push_many([Job(topic="mail", tags="order:1")]),  # type: ignore[arg-type]
    ),
    "an outbox": (
        "tags",
        lambda: outbox.push(None, Job(topic="mail", tags="order:1")),  # type: ignore[arg-type]
    ),
    "jobs to push": ("jobs", lambda: queue.push_many("mail")),  # type: ignore[arg-type]
    "task.push": (
        "tags",
        lambda: mail.push("me", tags="order:1"),  # type: ignore[arg-type]
    ),
    "task.job": (
        "tags",
        lambda: mail.job("me", tags="order:1"),  # type: ignore[arg-type]
    ),
    "task.push_many": ("rows", lambda: mail.push_many("me")),  # type: ignore[arg-type]
    "a row": ("row", lambda: mail.push_many(["m"])),  # type: ignore[list-item]
    "delete_many": ("jobs", lambda: queue.delete_many("order-1")),  # type: ignore[arg-type]
    "finish_many": ("jobs", lambda: queue.finish_many("order-1")),  # type: ignore[arg-type]
    "kick_many": ("ids", lambda: queue.kick_many("order-1")),  # type: ignore[arg-type]
    "get_many": ("ids", lambda: queue.get_many("order-1")),  # type: ignore[arg-type]
    "reschedule_many": (
        "ids",
        lambda: queue.reschedule_many("order-1", delay=1),  # type: ignore[arg-type]
    ),
    "retry": ("retry", lambda: queue.push("mail", retry=b"alipay")),  # type: ignore[arg-type]
    "retry delays": ("delays", lambda: queue.push("mail", retry={"delays": "10s"})),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_where_a_list_is_meant_is_refused_with_the_way_out(case: str) -> None:
    """mypy refuses each, too: it complains of a comment that is not needed."""
    name, call = TEXTS[case]
    with pytest.raises(TypeError, match=rf"^{name}=b?'[^']+' is a text: write {name}=\[b?'"):
        call()
    assert queue.cancel("order:1") == 0


@pytest.mark.parametrize(
    ("errors", "says"),
    [
        ("ValueError", "='ValueError' is a text: write {name}=['ValueError']"),
        (["ValueError"], ": 'ValueError': must be an exception class, such as ValueError"),
        ((ValueError("a"),), ": ValueError('a'): must be an exception class, such as ValueError"),
        (int, ": <class 'int'>: must be an exception class, such as ValueError"),
    ],
)
@pytest.mark.parametrize("name", ["bury_on", "retry_on"])
def test_errors_that_are_no_classes_are_refused_where_they_are_written(
    name: str, errors: Any, says: str
) -> None:
    for decorate in (Worker().on, Worker().task):
        with pytest.raises(TypeError) as refused:
            decorate("mail", **{name: errors})
        assert str(refused.value) == name + says.format(name=name)


def test_errors_may_be_listed_as_one_likes() -> None:
    kinds: list[Errors] = [LookupError, (LookupError, OSError), [LookupError], {LookupError}]
    for errors in kinds:
        failing = Worker()

        @failing.on("mail", bury_on=errors)
        def fail(body: str) -> None:
            raise KeyError(body)

        queue = Queue(failing)
        job_id = queue.push("mail")
        queue.advance()
        job = queue.get(job_id)
        assert job is not None
        assert job.state == "buried"


async def test_every_kind_of_collection_may_list_texts(client: Caller, topic: str) -> None:
    ids = [
        await client.push(topic, tags=tags, delay=60)
        for tags in (["a"], ("a",), {"a"}, {"a": 1}.keys(), iter(["a"]), (tag for tag in "a"))
    ]
    assert [job.tags for job in await client.get_many(one for one in ids)] == [("a",)] * len(ids)
    assert [one.code for one in await client.delete_many(dict.fromkeys(ids))] == [0] * len(ids)


def types_of_lists(client: Client, tag: str, ids: list[str]) -> None:
    """Never called: what mypy and pyright accept."""
    client.push("mail", tags=[tag])
    client.push("mail", tags=(tag, "all"))
    client.push("mail", tags={tag})
    client.push("mail", tags=(each for each in ids))
    client.delete_many(ids)
    client.delete_many(client.pop_many("mail", count=5))
    client.push_many(mail.job(each) for each in ids)
    client.get_many(dict.fromkeys(ids))
    mail.push_many([("me",)])
    mail.push("me", tags=map(str, ids))
