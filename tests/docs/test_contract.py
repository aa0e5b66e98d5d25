"""What the code declares is in every page, table and test that it has to be in; `make contract` prints the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from delayqueue.cli.request import remote
from delayqueue.config.option import Option
from delayqueue.web.api import Api  # noqa: TC001  # @endpoint reads the annotations
from delayqueue.web.endpoint import OF_JOB, PRODUCERS, endpoint
from delayqueue.web.requests import Request
from tests.contract import DUTIES, Declared, Lack, heading_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TODAY: Final = Declared()


class UnheardRequest(Request):
    """Two jobs."""

    first: str
    second: str


@endpoint("/unheard", PRODUCERS, errors=OF_JOB)
async def unheard(api: Api, asked: UnheardRequest) -> None:
    """Do what no endpoint does."""


@pytest.mark.parametrize("duty", DUTIES, ids=lambda duty: duty.__name__)
def test_nothing_that_is_declared_is_missing(
    duty: Callable[[Declared], Iterable[Lack]],
) -> None:
    assert [*map(str, duty(TODAY))] == []


def test_an_endpoint_that_is_nowhere_is_missed_everywhere() -> None:
    tomorrow = replace(
        TODAY,
        endpoints=[*TODAY.endpoints, unheard],
        commands=[*TODAY.commands, remote("unheard", "do it")],
        methods={*TODAY.methods, "unheard_many"},
        waits={**TODAY.waits, "unheard": "pushes"},
        rows={*TODAY.rows, "unheard"},
        options=[*TODAY.options, Option("unheard", "1", int, "how often", secret=False)],
    )
    lacks = {duty.__name__: {lack.file for lack in duty(tomorrow)} for duty in DUTIES}
    assert lacks.pop("clients") == {"delayqueue/client/job_verbs.py", "tests/client/every_verb.py"}
    assert lacks.pop("scripts") > {"tests/store/test_unheard.py"}
    assert lacks == {
        "sections": {"docs/api.md"},
        "fields": set(),  # it has no section yet
        "errors": set(),
        "trials": {"tests/api/test_unheard.py"},
        "confinement": {"tests/api/test_tokens.py"},
        "commands": {"docs/cli.md"},
        "tables": set(),  # they are made of what the code declares
        "settings": {"docs/config.md", "delay-queue.conf"},
        "changelog": {"CHANGELOG.md"},
    }


def test_a_wrong_list_of_errors_is_noticed() -> None:
    """/get can say that its argument is invalid, and nothing else of a job."""
    [get] = [each for each in TODAY.endpoints if each.path == "/get"]
    [errors] = [duty for duty in DUTIES if duty.__name__ == "errors"]
    [lack] = errors(replace(TODAY, endpoints=[replace(get, errors=OF_JOB)]))
    assert lack.add == f"write `Errors: 1, 2, 3, 6.` in `{heading_of(get)}`"
    assert lack.because == "@endpoint declares these, and it says [1, 6]"
