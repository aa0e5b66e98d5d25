"""What the heads of the scripts say about the verbs."""

from __future__ import annotations

from functools import partial
from typing import Final

import pytest

from delayqueue.config.config import Config
from delayqueue.store.scripts import REPLICATE, Scripts, read
from delayqueue.store.servers.durability import Durability

FOLLOW_THE_LAYOUT: Final = (
    "add_history buried calls cancel confirm due_schedules exports find forecast heartbeat history import inspect "
    "kick_tag list numbers pause_subscriber peek pop purge range ready_ids register registered registry_state "
    "reschedule_tag servers sweep tag_ids take tick topics unregister"
)
PUSHES: Final = "export import push register settle"
CHANGES: Final = (
    f"{PUSHES} bury cancel delete finish kick kick_tag limit pause pause_subscriber postpone purge record release "
    "reschedule reschedule_tag split_limits take touch unregister"
)
WAIT: Final = {"pushes": PUSHES, "changes": CHANGES, "all": f"{CHANGES} pop reserve"}
NEED: Final = {"sync": "import push register", "replicas": "import pop push register reserve"}


def read_edited(verb: str, old: str, new: str, name: str) -> str:
    """The text of a script, with one change in that of the verb."""
    text = read(name)
    if name != verb:
        return text
    assert old in text
    return text.replace(old, new)


def test_these_verbs_are_called_again_where_the_number_of_buckets_was_changed() -> None:
    verbs = Scripts().verbs.values()
    assert {verb.name for verb in verbs if verb.follows_layout} == {*FOLLOW_THE_LAYOUT.split()}


@pytest.mark.parametrize("replicate", REPLICATE)
def test_these_verbs_wait_for_replicas(replicate: str) -> None:
    replicas = Durability.of(Config(durability="replica", redis_replicate=replicate)).replicas
    assert replicas
    waiting = {name for name, verb in Scripts().verbs.items() if replicas.wait(verb)}
    assert waiting == {*WAIT[replicate].split()}


@pytest.mark.parametrize("need", NEED)
def test_these_verbs_are_not_begun_in_vain(need: str) -> None:
    verbs = Scripts().verbs.values()
    assert {verb.name for verb in verbs if need in verb.needs} == {*NEED[need].split()}


@pytest.mark.parametrize(
    ("verb", "old", "new", "says"),
    [
        ("push", "-- layout  raises\n", "", "push.lua: .* `-- layout  follows` or `raises`"),
        ("push", "-- waits  pushes\n", "", "push.lua: a verb that writes names what it waits for"),
        ("list", "-- layout", "-- waits  all\n-- layout", "list.lua: .* no-writes does not"),
        ("push", "  pushes", "  often", "push.lua: unknown line `-- waits  often`"),
        ("push", "-- needs", "-- need", "push.lua: unknown line `-- need  sync, replicas`"),
        ("touch", "allow-oom", "allow_oom", "touch.lua: unknown line `-- flags  allow_oom`"),
    ],
    ids=["no layout", "no waits", "waits and only reads", "a word", "a line", "a flag"],
)
def test_a_head_that_lacks_something_or_cannot_be_understood_is_refused(
    verb: str, old: str, new: str, says: str
) -> None:
    scripts = Scripts(read=partial(read_edited, verb, old, new))
    with pytest.raises(ValueError, match=says):
        assert scripts.verbs
