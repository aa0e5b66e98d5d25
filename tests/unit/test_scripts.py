"""What the heads of the scripts say about the verbs."""

import re
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from delayqueue.config.config import Config
from delayqueue.store.durability import Durability
from delayqueue.store.permissions import NEEDED
from delayqueue.store.scripts import Scripts, read

SOME_OF_EACH: Final = ("push", "finish", "pop", "tick", "list")


def read_edited(verb: str, old: str, new: str, name: str) -> str:
    """The text of a script, with one change in that of the verb."""
    text = read(name)
    if name != verb:
        return text
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("replicate", "waiting"),
    [("pushes", {"push"}), ("changes", {"push", "finish"}), ("all", {"push", "finish", "pop"})],
)
def test_each_word_of_redis_replicate_includes_those_before(
    replicate: str, waiting: set[str]
) -> None:
    replicas = Durability.of(Config(durability="replica", redis_replicate=replicate)).replicas
    assert replicas
    verbs = Scripts().verbs
    assert {name for name in SOME_OF_EACH if replicas.wait(verbs[name])} == waiting


@pytest.mark.parametrize(
    ("verb", "old", "new", "says"),
    [
        ("push", "-- waits  pushes\n", "", "push.lua: a verb that writes names what it waits for"),
        ("list", "-- flags", "-- waits  all\n-- flags", "list.lua: .* no-writes does not"),
        ("push", "  pushes", "  often", "push.lua: unknown line `-- waits  often`"),
        ("push", "-- needs", "-- need", "push.lua: unknown line `-- need  sync, replicas`"),
        ("touch", "allow-oom", "allow_oom", "touch.lua: unknown line `-- flags  allow_oom`"),
    ],
    ids=["no waits", "waits and only reads", "a word", "a line", "a flag"],
)
def test_a_head_that_lacks_something_or_cannot_be_understood_is_refused(
    verb: str, old: str, new: str, says: str
) -> None:
    scripts = Scripts(read=partial(read_edited, verb, old, new))
    with pytest.raises(ValueError, match=says):
        assert scripts.verbs


NO_COMMANDS: Final = {"COUNT", "LIMIT", "MATCH", "MAXLEN", "RANK", "WITHSCORES", "WRONGTYPE"}
NOT_ASKED_FOR: Final = {"INFO", "PUBLISH"}  # may be forbidden; is that of stores which do not tell


def test_each_command_that_a_script_calls_is_one_that_the_store_is_asked_for() -> None:
    called = set(re.findall(r"'([A-Z]{3,})'", Scripts().library.source)) - NO_COMMANDS
    assert called - NOT_ASKED_FOR == set(NEEDED.split()) - {"EVAL", "PING", "SET"}


KNOWN: Final = {
    *("KEYS", "ARGV", "redis", "cjson", "bit", "string", "table", "math", "error", "ipairs"),
    *("next", "pairs", "pcall", "select", "setmetatable", "tonumber", "tostring", "type", "unpack"),
}
GLOBAL: Final = re.compile(r"[GS]ETGLOBAL\s.*; (\w+)$", re.MULTILINE)


@pytest.mark.parametrize(
    "scripts", [Scripts(), Scripts("wheel", 3600)], ids=lambda one: one.scheduler
)
def test_a_script_names_nothing_that_does_not_exist(scripts: Scripts, tmp_path: Path) -> None:
    """The store finds that out only when it gets there, and each call may get somewhere else."""
    compiler = shutil.which("luac5.1")
    if compiler is None:
        pytest.skip("lua5.1 is not installed")
    path = tmp_path / "script.lua"
    for verb in scripts.verbs:
        path.write_text(scripts.script(verb).source.removeprefix("#!lua"), "utf-8")
        listed = subprocess.run(
            [compiler, "-l", "-p", str(path)], capture_output=True, text=True, check=True
        )
        assert set(GLOBAL.findall(listed.stdout)) <= KNOWN, verb
