"""What the code declares is in every page, table and test that it has to be in; `make contract` prints the same."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

import pytest

from delayqueue.cli.request import remote
from delayqueue.config.option import Option
from delayqueue.domain.push_fields import PushField
from delayqueue.domain.push_rules import short_text
from delayqueue.errors import Text
from delayqueue.store.scripts import ScriptHead
from delayqueue.web.api import Api
from delayqueue.web.endpoint import OF_JOB, PRODUCERS, endpoint
from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.web.requests import Request
from scripts import tables
from tests.contract import DUTIES, Declared, Lack, heading_of

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
        heads={
            **TODAY.heads,
            "unheard": ScriptHead("unheard", (), waits="pushes", needs=()),
        },
        rows={*TODAY.rows, "unheard"},
        options=[*TODAY.options, Option("unheard", "1", int, "how often", secret=False)],
    )
    lacks = {duty.__name__: {lack.file for lack in duty(tomorrow)} for duty in DUTIES}
    assert lacks.pop("clients") == {"delayqueue/client/job_verbs.py", "tests/client/every_verb.py"}
    assert lacks.pop("scripts") > {"tests/store/test_unheard.py"}
    assert lacks.pop("php") == {"clients/php/src/Verbs/JobVerbs.php", "tests/php/every_verb.php"}
    assert lacks == {
        "sections": {"docs/api.md"},
        "fields": set(),  # it has no section yet
        "errors": set(),
        "trials": {"tests/api/test_unheard.py"},
        "confinement": {"tests/api/test_tokens.py", "tests/tools/test_contract.py"},
        "commands": {"docs/cli.md"},
        "heads": set(),
        "tables": set(),  # they are made of what the code declares
        "push_fields": set(),
        "settings": {"docs/config.md", "delay-queue.conf"},
        "changelog": {"CHANGELOG.md"},
    }


def test_a_field_of_a_push_that_is_only_declared_is_missed_everywhere() -> None:
    unheard = PushField(
        name="un_heard",
        rule=short_text,
        words=Text("没有人听到", "Nobody hears it."),
        option="--un-heard TEXT",
        kept_as="unheard",
        is_popped=True,
        is_in_form=True,
    )
    [duty] = [duty for duty in DUTIES if duty.__name__ == "push_fields"]
    lacks = [*duty(replace(TODAY, push_fields=[*TODAY.push_fields, unheard]))]
    assert sorted({lack.file for lack in lacks}) == [
        "CHANGELOG.md",
        "clients/php/src/Answer/TakenJob.php",
        "clients/php/src/Job.php",
        "clients/php/src/NewJob.php",
        "clients/php/src/Verbs/JobVerbs.php",
        "delayqueue/answers/jobs.py",
        "delayqueue/client/pushes.py",
        "delayqueue/domain/push_fields.py",
        "delayqueue/web/endpoints/push.py",
        "delayqueue/web/static/admin/js/pages/push.js",
        "tests/push_cases.py",
    ]
    adds = [lack.add for lack in lacks]
    assert "add `'un_heard' => $this->unHeard,` to toRequest()" in adds
    assert [add for add in adds if add.endswith("at the end of ReservedJob")]


def test_a_field_that_the_form_has_and_the_declaration_does_not_name_is_noticed() -> None:
    [priority] = [field for field in TODAY.push_fields if field.name == "priority"]
    [duty] = [duty for duty in DUTIES if duty.__name__ == "push_fields"]
    [lack] = duty(replace(TODAY, push_fields=[replace(priority, is_in_form=False)]))
    assert lack.add == "add `is_in_form=True` to `priority`"


def test_a_wrong_list_of_errors_is_noticed() -> None:
    """/get can say that its argument is invalid, and nothing else of a job."""
    [get] = [each for each in TODAY.endpoints if each.path == "/get"]
    [errors] = [duty for duty in DUTIES if duty.__name__ == "errors"]
    [lack] = errors(replace(TODAY, endpoints=[replace(get, errors=OF_JOB)]))
    assert lack.add == f"write `Errors: 1, 2, 3, 6.` in `{heading_of(get)}`"
    assert lack.because == "@endpoint declares these, and it says [1, 6]"


def test_a_head_with_which_a_failover_would_go_unnoticed_is_named() -> None:
    """A client of /finish was told that it is done."""
    [heads] = [duty for duty in DUTIES if duty.__name__ == "heads"]
    careless = TODAY.heads["finish"]._replace(waits="never")
    [lack] = heads(replace(TODAY, heads={**TODAY.heads, "finish": careless}))
    assert lack.add.partition(",")[0] == "write `-- waits  changes`"


def test_a_page_that_a_person_has_to_change_first_is_listed_with_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A section that is missing does not hide the rest of the list."""
    monkeypatch.setattr(tables, "ENDPOINTS", [*ENDPOINTS, unheard])
    [duty] = [duty for duty in DUTIES if duty.__name__ == "tables"]
    lacks = {lack.file: lack.add for lack in duty(TODAY)}
    assert lacks == dict.fromkeys(
        ["docs/api.md", "docs/api.zh-CN.md"], "add a section `### POST /unheard`"
    )
