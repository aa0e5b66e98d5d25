"""The kinds of damage that a store can have: a word for programs and a sentence for people. No IO."""

from typing import Final

# {name} is a topic, or a key without the bucket's tag.
KINDS: Final = {
    "lost": "job {id} of topic {name} is lost: the store has dropped its record",
    "unplaced": "job {id} of topic {name} is in no index: it would never be delivered",
    "double": "job {id} of topic {name} is in two indexes",
    "due": "job {id} of topic {name} is indexed at another due time than its record says",
    "entry": "{id} is in {name}, but does not belong there",
    "ghost_count": "the ready list of topic {name} does not have as many ghosts as were counted",
    "run": "the recorded attempts of job {id} ({name}) are inconsistent",
    "expiry": "job {id} of topic {name} would not expire on time",
    "priority": "job {id} ({name}) is not indexed by its priority",
    "called": "the jobs of topic {name} that have a call would not be called",
    "group": "the group {id} of topic {name} would not have its turn, or not when it may",
    "tag": "job {id} is not indexed by its tag {name}",
    "kept": "the kept result of job {id} ({name}) is inconsistent",
    "timer": "the timer would check topic {name} too late, or never",
    "wheel": "the wheel of topic {name} does not match its slots",
    "topic": "topic {name} has jobs, but is not in the list of topics",
    "settings": "the settings of topic {name} cannot be read",
    "record": "the record of job {id} cannot be read",
    "type": "key {name} has the wrong type",
    "key": "key {name} is not one of ours: remove it by hand",
}
LOST: Final = "lost"  # only the entry that is left can be removed
MENDABLE: Final = tuple(kind for kind in KINDS if kind not in (LOST, "key"))


def sentence(kind: str, name: str, job_id: str) -> str:
    """Describe one finding for people."""
    return KINDS[kind].format(name=repr(name), id=repr(job_id))
