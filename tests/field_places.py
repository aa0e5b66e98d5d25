"""Where a field of /push stands besides its declaration: signatures that are written out for editors, tests, pages."""

import re
from collections.abc import Collection, Iterator
from dataclasses import fields
from inspect import signature
from typing import Final, NamedTuple

from delayqueue.answers.jobs import ReservedJob, TakenJob
from delayqueue.client.pushes import FIELDS as OF_JOB
from delayqueue.client.pushes import PushVerbs
from delayqueue.domain.job import MAX_TEXT_BYTES
from delayqueue.domain.push_fields import PushField
from delayqueue.web.endpoints.push import PushRequest
from tests.docs.markdown import read
from tests.push_cases import VALUES

DECLARATION: Final = "delayqueue/domain/push_fields.py"
FORM: Final = "delayqueue/web/static/admin/js/pages/push.js"
PHP: Final = "clients/php/src"
PHP_CALLS: Final = "tests/php/every_verb.php"
CHANGELOG: Final = "CHANGELOG.md"
# fields without an option of `delay-queue push`, and why
WITHOUT_OPTION: Final = {"traceparent": "nobody types the trace of a program"}

# what the changelog of the first version calls some
TOLD_AS: Final = {
    **dict.fromkeys(("id", "topic", "body"), "job"),
    "priority": "priorities",
    "traceparent": "OpenTelemetry",
}


class Place(NamedTuple):
    """A file, what a text needs there, and whether the field has it: fields of other kinds look alike."""

    file: str
    add: str
    is_there: bool


def places(one: PushField, options: Collection[str]) -> Iterator[Place]:
    """All places of a field; `options` are those that `delay-queue push` has, as the fields that they stand for."""
    yield from _in_python(one, options)
    yield from _in_php(one)
    yield from _in_page(one)
    yield from _in_tests(one)


def in_php(name: str) -> str:
    """A name as PHP writes it."""
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def _in_python(one: PushField, options: Collection[str]) -> Iterator[Place]:
    name = one.name
    line, told = f"`{name}: str | None = None`", f'`{name}: str = omittable(default="")`'
    yield Place(
        "delayqueue/web/endpoints/push.py",
        f'add `{name}: ShortText | None = optional(WORDS["{name}"].en)` to PushRequest',
        name in PushRequest.model_fields,
    )
    yield Place("delayqueue/client/pushes.py", f"add {line} to Job", name in OF_JOB)
    arguments = signature(vars(PushVerbs)["push"].build).parameters
    yield Place("delayqueue/client/pushes.py", f"add {line} to push()", name in arguments)
    yield Place(
        DECLARATION,
        f'add `option="--{name.replace("_", "-")} TEXT"` and `help="…"` to `{name}`',
        name in {*options, *WITHOUT_OPTION},
    )
    for kind, is_told in ((TakenJob, bool(one.kept_as)), (ReservedJob, one.is_popped)):
        if is_told:
            known = {member.name for member in fields(kind)}
            add = f"add {told} at the end of {kind.__name__}"
            yield Place("delayqueue/answers/jobs.py", add, name in known)


def _in_php(one: PushField) -> Iterator[Place]:
    name, camel = one.name, in_php(one.name)
    job, verbs = f"{PHP}/NewJob.php", f"{PHP}/Verbs/JobVerbs.php"
    constructor = read(job).partition("function __construct(")[2].partition(") {")[0]
    texts = read(job).partition("const TEXTS")[2].partition(";")[0]
    request = read(job).partition("function toRequest(")[2]
    push = read(verbs).partition("function push(")[2].partition("\n    }\n")[0]
    typed = f"`public readonly ?string ${camel} = null,`"
    yield Place(
        job,
        f"add {typed} at the end of the constructor, and its @param",
        re.search(rf"\${camel}\b", constructor) is not None,
    )
    yield Place(
        job,
        f"add `'{name}' => {MAX_TEXT_BYTES}` to TEXTS",
        f"'{name}'" in texts + read(f"{PHP}/Internal/PushRules.php"),
    )
    yield Place(
        job, f"add `'{name}' => $this->{camel},` to toRequest()", f"'{name}' => " in request
    )
    yield Place(
        verbs,
        f"add `?string ${camel} = null,`, its @param and `{camel}: ${camel},` to push()",
        f"{camel}: ${camel}," in push,
    )
    if one.kept_as:
        taken = f"{PHP}/Answer/TakenJob.php"
        add = f"add {typed}, and `{camel}: $data->stringOrNull('{name}'),` to from()"
        yield Place(taken, add, f"'{name}'" in read(taken))
    if one.is_popped:
        popped = f"{PHP}/Job.php"
        add = f"add `public readonly string ${camel} = '',`, and `{camel}: $data->string('{name}', ''),` to from()"
        yield Place(popped, add, f"'{name}'" in read(popped))


def _in_page(one: PushField) -> Iterator[Place]:
    name = one.name
    is_asked = re.search(rf'\b(?:field|lines)\("{name}"', read(FORM)) is not None
    if one.is_in_form:
        add = f'add `field("{name}", t("{name}Help"))`, its value to job(), and its words to ../i18n.js'
        yield Place(FORM, add, is_asked)
    else:
        yield Place(DECLARATION, f"add `is_in_form=True` to `{name}`", not is_asked)


def _in_tests(one: PushField) -> Iterator[Place]:
    name, camel = one.name, in_php(one.name)
    add = f"add `{name}` with values on both sides of its rule to VALUES"
    yield Place("tests/push_cases.py", add, name in VALUES)
    called = rf"\$queue->push\(.*\b{camel}: "  # the first two are given by their places, those of TEXTS all together
    is_called = name in {"topic", "body"} or re.search(called, read(PHP_CALLS)) is not None
    has_own_rule = f"'{name}'" in read(f"{PHP}/Internal/PushRules.php")
    add = f"add `{camel}: …` to the first push"
    yield Place(PHP_CALLS, add, is_called or (bool(one.kept_as) and not has_own_rule))
    is_announced = TOLD_AS.get(name, f"`{name}`") in read(CHANGELOG)
    yield Place(CHANGELOG, f"add a line on `{name}` under Unreleased", is_announced)
