"""Names and texts with control characters, as everything that people look at shows them."""

import json
from typing import Final
from urllib.request import urlopen

import pytest

from delayqueue.client import Client
from tests.processes import QueueServer

from .test_remote import Run

HOSTILE: Final = "\x1b[2J\x9b2J\x07\x7f\u202e"
READERS: Final[dict[str, tuple[str, ...]]] = {
    verb: tuple(arguments)
    for verb, *arguments in (
        ("stats",),
        ("topics",),
        ("list", "{topic}"),
        ("peek", "{topic}"),
        ("get", "{id}"),
        ("buried",),
        ("find", "--topic", "{topic}"),
        ("subscribers",),
        ("schedules",),
        ("workers",),
        ("pop", "{topic}"),
        ("forecast", "{topic}"),
        ("history",),
    )
}


@pytest.fixture(scope="module")
def hostile(server: QueueServer) -> str:
    """The name of a topic, a job and all else, each with control characters."""
    name = f"hostile{HOSTILE}name"
    with Client(server.url, token="") as client:
        for job_id in (name, f"{name}2"):
            client.push(name, f"body{HOSTILE}", id=job_id, tags=[f"tag{HOSTILE}"])
        job = client.pop(name, wait=5)
        assert job is not None
        client.bury(job, message=f"why{HOSTILE}")
        client.subscribe(f"{name}-calls", f"none{HOSTILE}", "http://1.1.1.1:9/")
        client.schedule(name, name, every=3600, body=HOSTILE)
    return name


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize("verb", READERS)
def test_no_verb_prints_one(run: Run, hostile: str, verb: str, form: str) -> None:
    arguments = [each.format(topic=hostile, id=hostile) for each in READERS[verb]]
    said = run(verb, *arguments, *(["--json"] if form == "json" else []))
    shown = said.out + said.err
    assert not [char for char in shown if char in HOSTILE[0] + "\x9b\x07\x7f\u202e"], shown
    if form == "json" and verb == "get":
        assert json.loads(said.out)["body"] == f"body{HOSTILE}"


def test_a_label_of_metrics_has_none(server: QueueServer, hostile: str) -> None:
    with urlopen(f"{server.url}/metrics") as answer:
        text = answer.read().decode()
    assert r'topic="hostile\\u001b[2J\\u009b2J' in text
    assert not set(HOSTILE) - set("[2J") & set(text)
