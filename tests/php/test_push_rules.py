"""The rules by which the PHP package refuses a job before the INSERT are those of /push."""

import json
from typing import Any, Final

from tests.push_cases import CASES, verdict

from .project import Project

# reads cases, one a line, and answers with what is wrong with each
PROGRAM: Final = """
foreach (json_decode(file_get_contents('cases.json'), true) as $fields) {
    $said = '';
    try {
        DelayQueue\\Client\\Internal\\PushRules::checked(array_filter($fields, fn ($value) => $value !== null));
    } catch (InvalidArgumentException $error) {
        $said = $error->getMessage();
    }
    echo json_encode($said), "\\n";
}
"""


def test_the_rules_say_what_the_request_model_says(project: Project) -> None:
    (project.folder / "cases.json").write_text(json.dumps(CASES), "utf-8")
    said = [json.loads(line) for line in project.php(PROGRAM).splitlines()]
    differences = [
        (fields, php, server)
        for fields, php, server in zip(CASES, said, map(verdict, CASES), strict=True)
        if not agrees(fields, php, server)
    ]
    assert differences == []


def agrees(fields: dict[str, Any], php: str, server: str) -> bool:
    """Whether both take it, or refuse it with one message; that about an object may name another part of it."""
    if {"delay", "due"} <= fields.keys() or {"*", "k"} <= {*map(str, fields.values())}:
        return True  # the package sends only one of the two, and its outbox takes no key
    if {"retry", "call"} & fields.keys():  # PHP has one type for {} and []
        return field_of(php) == field_of(server)
    return php.partition("; there are")[0] == server


def field_of(message: str) -> str:
    """The field that a message is about."""
    return message.partition(":")[0].partition(".")[0]
