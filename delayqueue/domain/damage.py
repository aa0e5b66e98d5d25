"""What can be wrong with the contents of a store: a word for programs and a sentence for people. No IO."""

from typing import Final

# {name} is a topic, or a key without the bucket's tag.
KINDS: Final = {
    "lost": "job {id} of topic {name} is in no place: it would never be delivered",
    "double": "job {id} of topic {name} is in two places",
    "due": "job {id} of topic {name} stands at another due time than its record says",
    "entry": "{id} stands in {name} without belonging there",
    "ghost_count": "the ready list of topic {name} has another number of ghosts than is counted",
    "run": "what is noted of the attempts of job {id} ({name}) is not in order",
    "expiry": "job {id} of topic {name} would not expire at its time",
    "priority": "job {id} ({name}) is not known by its priority",
    "tag": "job {id} is not found by its tag {name}",
    "kept": "the kept result of job {id} ({name}) is not in order",
    "timer": "the timer would look at topic {name} too late, or never",
    "wheel": "the wheel of topic {name} does not agree with its slots",
    "topic": "topic {name} has jobs and is not in the list of topics",
    "settings": "the settings of topic {name} cannot be read",
    "record": "the record of job {id} cannot be read",
    "type": "key {name} is of another type than it should be",
    "key": "key {name} is none of ours: remove it by hand",
}
MENDABLE: Final = tuple(kind for kind in KINDS if kind != "key")


def sentence(kind: str, name: str, job_id: str) -> str:
    """One thing that is wrong, for people."""
    return KINDS[kind].format(name=repr(name), id=repr(job_id))
