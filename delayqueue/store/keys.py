"""Every key that the store uses. The scripts build the same names (scripts/_keys.lua).

All keys of a bucket begin with its tag `T` and a colon. The tag is one Redis Cluster hash tag: `{dq_bucket_1}`. Beside
KEYS there are

- `T:dq_queue_TOPIC`, a list: ids that are ready; the name comes from `queue_name`. May hold ghosts: ids whose job was
  deleted, replaced or taken since;
- `T:probe`, which never exists: whether a server takes writes (health.py);
- `T["TOPIC*", ...]`, no key: how a script is told which topics the client may reach (access.py);
- `T:ready`, a pub/sub channel: "sender count topic" when jobs became ready, without a topic those with a call; "sender
  0 id" when an awaited one has ended: to an older version of the server, no job of a topic that nobody asks for. All
  databases of the store share it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# The names behind the tag, with their types, and what they hold: member or field -> score or value. Of a name with a
# colon there are many, one for each topic, tag or whatever else stands behind the colon.
KEYS: Final[Mapping[str, str]] = {
    "job": "hash",  # id -> record (record.py): the job as pushed, with its present due time
    "run": "hash",  # id -> attempt, receipt, results, notes; only of jobs that were handed out
    "delay:TOPIC": "zset",  # id -> due ms
    # with the wheel, instead of T:delay: id -> ms that slot N was under the hand since 1970: due // 1 h * slot ms + due
    # % slot ms
    "slot:N:TOPIC": "zset",
    "wheel:TOPIC": "zset",  # slot -> due ms of its first job
    "rounds:TOPIC": "hash",  # due // 1 h -> delayed jobs; "all" -> of all rounds
    "ghosts": "hash",  # topic -> number of ghosts in its ready list
    "awaited": "zset",  # id -> ms until which its end, or burial, is announced (await_end.lua)
    "removed": "hash",  # topic -> how many ids have been taken out of its ready list, for readers (_marks.lua)
    # the ready jobs whose priority is not the usual one: due ms, length of the id and id -> priority (_ready.lua)
    "ranked:TOPIC": "zset",
    "called:TOPIC": "zset",  # the ready jobs with a call, in the same way
    "called_topics": "zset",  # topic that has some -> ms from which on pop looks at it
    # the ready jobs of groups, all with the score 0: length of the group, group, \0, priority, due ms, ms of the push,
    # length of the id, id (_groups.lua)
    "grouped:TOPIC": "zset",
    "turns:TOPIC": "zset",  # group that waits for its turn in this round -> ms since when
    "next:TOPIC": "zset",  # group that had its turn in this round and has more -> ms since when
    "held:TOPIC": "zset",  # group with ready jobs of which none may be taken now -> ms since when
    "rested:TOPIC": "zset",  # groups that had their turn in this round and had no more then, and since when
    "called_grouped:TOPIC": "zset",  # the same for jobs with a call
    "called_turns:TOPIC": "zset",
    "called_next:TOPIC": "zset",
    "called_held:TOPIC": "zset",
    "called_rested:TOPIC": "zset",
    "hand:TOPIC": "zset",  # the reserved jobs of groups, all with the score 0: length of the group, group, \0, id
    "first:TOPIC": "hash",  # group whose order is strict -> id of its job that failed: the others wait for it
    # id -> priority; of all jobs with a call, a group or another priority than the usual one, ready or not
    "priorities": "hash",
    "reserved:TOPIC": "zset",  # id -> deadline ms
    "buried:TOPIC": "zset",  # id -> ms when it was buried
    "expire:TOPIC": "zset",  # id -> ms when an undelivered job expires; only of jobs with `expire`
    "ended": "hash",  # id -> state, ms, message, run, record; only of jobs with `retain`
    "done:TOPIC": "zset",  # id -> ms when the kept record is dropped
    "tag:TAG": "set",  # ids, including those of kept records
    "timers": "zset",  # topic -> ms of the earliest score among its delayed, reserved, expire, done
    "topics": "hash",  # topic -> settings (JSON, "" = none)
    "rates": "hash",  # topic with a rate -> ms at which its whole burst is available again (_limits.lua)
    "broken": "zset",  # id -> ms when its unreadable record was set aside
    "aside:MS:KEY": "any",  # the former value of T:KEY, which had the wrong type (inspect.lua)
    # of bucket 1 only: version, bucket_size, queue_name, scheduler, wheel_slots; id: a unique name of this data;
    # emptied, former, accepted, marked (watch.py); generation, former_bucket_sizes, changing, changer, percent: for
    # changes of the number of buckets (change.py); moving: if an older version changes it
    "layout": "hash",
    # "generation" -> that of the layout, or of a change under way; scripts from servers with an older one are refused
    # (change.py); "waited" comes and goes with calls that wait for replicas (_call.lua); "mark ID" -> 0: the data's id
    # (watch.py)
    "fence": "zset",
    "parcel:BUCKET": "list",  # of an older version, as the two below: jobs on their way to that bucket
    "sent": "hash",  # bucket -> number of the last parcel that was made for it
    "taken": "hash",  # bucket -> number of the last parcel that came from it
    "numbers": "str",  # of bucket 1 only: the last number that was given out (numbers.lua)
    "servers": "hash",  # of bucket 1 only: server process -> ms when it was last heard, figures (JSON)
    # of bucket 1 only: server process -> ms when it was last heard, the workers that it has seen (JSON)
    "workers": "hash",
    # id -> receipt, name of the worker that holds it; PROCESS is the first part of the receipts of a server process. It
    # expires (hold.lua)
    "holders:PROCESS": "hash",
    # of bucket 1 only: figures of topics in a slot of MS milliseconds; it expires (_history.lua). T:history:marks is a
    # list of "ms kind lasted server"
    "history:MS:PLACE": "hash",
    "subscribers": "hash",  # of bucket 1 only, as the five below: name -> definition (JSON)
    "schedules": "hash",  # name -> definition (JSON)
    "notes": "hash",  # reason of dead letters -> what people say of them (JSON: text, by, at ms)
    "schedule_times": "zset",  # name of a schedule -> ms of its next occurrence
    "subscribers_paused": "hash",  # name of a subscriber that is paused -> ms since when
    "revisions": "hash",  # subscribers, schedules, notes -> number that grows with each change
    # succeeded HOUR, failed HOUR, ms HOUR -> calls of that hour since 1970, how long they took; ends a day after the
    # last one
    "subscriber_calls:NAME": "hash",
    # the last calls that failed, newest first (JSON: at ms, id, message); for a week
    "subscriber_failures:NAME": "list",
}


def literal(text: str) -> str:
    r"""Escape a text for a pattern of SCAN: "a*" becomes "a\*"."""
    return "".join(f"\\{char}" if char in "*?[]\\" else char for char in text)


@dataclass(frozen=True, slots=True)
class BucketKeys:
    """The key names that Python passes to the scripts or reads itself."""

    tag: str
    queue_name: str  # %s stands for the topic

    @classmethod
    def of(cls, bucket: int, bucket_name: str, queue_name: str) -> "BucketKeys":
        """The names for bucket number `bucket` (from 1, as in the original).

        `bucket_name` contains %d, `queue_name` %s.
        """
        tag = "{" + bucket_name.replace("%d", str(bucket)) + "}"
        return cls(tag, f"{tag}:{queue_name}")

    def named(self, name: str) -> str:
        """The key with that name, one of KEYS, or the channel `ready`."""
        return f"{self.tag}:{name}"
