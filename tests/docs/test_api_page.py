"""docs/api.md: complete, true to the tables in the code, and its examples answer as shown."""

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from delayqueue import errors
from delayqueue.domain import job, retry, schedule
from delayqueue.errors import QueueError
from delayqueue.web import parse
from tests.processes import Processes, QueueServer, StoreServer

from .markdown import Reader, examples, read

PAGE: Final = read("docs/api.md")
BOTH: Final = (PAGE, read("docs/api.zh-CN.md"))
LIMITS: Final = (
    ("id", job.MAX_ID_BYTES),
    ("topic, tag", job.MAX_TOPIC_BYTES),
    ("topic, tag", job.MAX_TAG_BYTES),
    ("a `cron` expression", schedule.MAX_CRON_CHARS),
    ('a length of time as text, such as `"15s"`', retry.MAX_TEXT_CHARS),
    ("jobs, ids in a call; `count`; `limit`", job.MAX_BATCH),
    ("members of a request's JSON, nested ones too", parse.MOST_MEMBERS),
    ("members of a request's JSON, nested ones too", parse.MOST_MEMBERS_OF_ARRAY),
    ("topics in a `/pop`", job.MAX_POP_TOPICS),
    ("delays of a retry schedule", retry.MAX_STEPS),
    ("steps of a forecast", job.MAX_FORECAST_STEPS),
    ("message", job.MAX_MESSAGE_CHARS),
)


@pytest.fixture(scope="module")
def english_server(processes: Processes, redis_server: StoreServer) -> QueueServer:
    """A server with no jobs, set as the page says; it refuses fields that do not exist."""
    return processes.server(redis_server, language="en", strict="yes")


def test_every_example_answers_as_shown(english_server: QueueServer) -> None:
    reader = Reader(english_server)
    for example in examples(PAGE):
        shown, printed = reader.follow(example)
        assert shown == printed


def every_error(error: type[QueueError] = QueueError) -> Iterator[type[QueueError]]:
    for kind in error.__subclasses__():
        yield kind
        yield from every_error(kind)


@pytest.mark.parametrize("error", list(every_error()), ids=lambda error: error.__name__)
def test_every_error_has_its_row(error: type[QueueError]) -> None:
    said = error.default
    row = f"| {error.code} | {error.status.value} | {said.en} | {said.zh} |"
    assert all(row in page for page in BOTH)


@pytest.mark.parametrize("said", [errors.DONE, errors.ADDED], ids=["done", "added"])
def test_every_success_has_its_row(said: errors.Text) -> None:
    assert all(f"| 0 | 200 | {said.en} | {said.zh} |" in page for page in BOTH)


@pytest.mark.parametrize("state", job.State)
def test_every_state_is_in_the_picture(state: str) -> None:
    assert re.search(rf"\b{state}\b", read("docs/images/states.svg"))


@pytest.mark.parametrize("name", retry.PRESETS)
def test_a_preset_is_written_out(name: str) -> None:
    assert f'| `{{"preset": "{name}"}}` | {", ".join(retry.PRESETS[name])} |' in PAGE


@pytest.mark.parametrize(("what", "limit"), LIMITS)
def test_a_limit_is_that_of_the_code(what: str, limit: int) -> None:
    (table,) = re.findall(r"^## Limits\n(.*?)^##", PAGE, re.M | re.S)
    (said,) = re.findall(rf"^\| {re.escape(what)} \| (.*) \|$", table, re.M)
    assert str(limit) in re.findall(r"\d+", said)


def test_the_formula_gives_the_delays_that_are_shown() -> None:
    shown: dict[str, Any] = {"steps": 5, "base_ms": 2000, "factor": 3, "cap_ms": 60_000}
    delays = retry.exponential(**shown, jitter=0.1, random=lambda: 0.5)
    assert '`{"max": 5, "base": "2s", "factor": 3, "cap": "1m", "jitter": 0.1}`' in PAGE
    assert delays == retry.explicit(["2s", "6s", "18s", "54s", "1m"])
