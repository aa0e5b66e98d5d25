"""docs/cli.md: its commands print what it shows."""

import re
from pathlib import Path
from typing import Final

import pytest

from delayqueue.cli.remote import REMOTE, WATCH
from delayqueue.web.endpoints.topics import FILTERS, SORTS
from tests.processes import QueueServer

from .markdown import examples, looks, read, typed_in

PAGE: Final = read("docs/cli.md")
VERBS: Final = [verb for family in REMOTE.values() for verb in family]
PLACEHOLDERS: Final = {
    "<time>": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
    "<age>": r"\d+\.\ds",
    "<id>": r"[0-9a-f]{32}",
    "<receipt>": r"[0-9a-f]{12}-[0-9a-f]+-[0-9a-f]{8}",
    "<unix>": r"\d{10}\.\d+",
    "<run>": r"[-0-9T:.]+Z",
    "<paths>": r"/push, (/[\w.-]+, )+/docs",
}


def test_every_command_prints_what_is_shown(server: QueueServer, tmp_path: Path) -> None:
    last: dict[str, str] = {}
    for command, answer in examples(PAGE):
        for _ in looks(command):
            _, printed = typed_in(filled(command, last), tmp_path, url=server.url)
            if match := re.fullmatch(pattern(answer), printed):
                break
        assert match, f"{command}\nshown:\n{answer}\nprinted:\n{printed}"
        for word in PLACEHOLDERS:
            group = match.groupdict().get(word.strip("<>"))
            last |= {word: group} if group else {}


def filled(command: str, last: dict[str, str]) -> str:
    for word, value in last.items():
        command = command.replace(word, value)
    return command


def pattern(answer: str) -> str:
    """As a regular expression; the first of each placeholder is a group. Column widths do not count."""
    seen: set[str] = set()

    def of_word(word: str) -> str:
        if word not in PLACEHOLDERS:
            return r"\s+" if word.isspace() else re.escape(word)
        first = word not in seen
        seen.add(word)
        return f"(?P<{word.strip('<>')}>{PLACEHOLDERS[word]})" if first else PLACEHOLDERS[word]

    return "".join(of_word(word) for word in re.split(r"(<\w+>|\s+)", answer) if word)


@pytest.mark.parametrize("page", ["docs/cli.md", "docs/cli.zh-CN.md"])
def test_every_verb_that_can_watch_is_listed(page: str) -> None:
    [line] = [line for line in read(page).splitlines() if "--watch 10s" in line]
    [listed] = re.findall(r"[(（](`.+?)[)）]", line)
    verbs = [verb.name for verb in VERBS if WATCH in verb.arguments]
    assert sorted(re.findall("`(.+?)`", listed)) == sorted(verbs)


def test_the_help_of_topics_names_what_it_can_sort_and_select() -> None:
    [topics] = [verb for verb in VERBS if verb.name == "topics"]
    helps = [argument.options.get("help", "") for argument in topics.arguments]
    for names in (FILTERS, SORTS):
        assert any(all(name in text for name in names) for text in helps), set(names)
