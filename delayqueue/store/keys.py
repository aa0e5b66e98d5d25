"""Every key that the store uses. The scripts build the same names (scripts/_keys.lua).

All keys of a bucket begin with its tag `T`, which is one Redis Cluster hash tag: `{dq_bucket_1}`.

| key                  | type | member or field -> score or value                                                     |
| -------------------- | ---- | ------------------------------------------------------------------------------------- |
| T:job                | hash | id -> record (record.py): the job as pushed, with its present due time                |
| T:run                | hash | id -> attempt, receipt, results, notes; only of jobs that were handed out             |
| T:delay:TOPIC        | zset | id -> due ms                                                                          |
| T:slot:N:TOPIC       | zset | with the wheel, instead of T:delay: id -> ms that slot N was under the hand since     |
|                      |      | 1970: due // 1 h * slot ms + due % slot ms                                            |
| T:wheel:TOPIC        | zset | slot -> due ms of its first job                                                       |
| T:rounds:TOPIC       | hash | due // 1 h -> delayed jobs; "all" -> of all rounds                                    |
| T:dq_queue_TOPIC     | list | ids that are ready; the name comes from `queue_name`. May hold ghosts: ids whose job  |
|                      |      | was deleted, replaced or taken since                                                  |
| T:ghosts             | hash | topic -> number of ghosts in its ready list                                           |
| T:awaited            | zset | id -> ms until which its end, or burial, is announced (await_end.lua)                 |
| T:removed            | hash | topic -> how many ids have been taken out of its ready list, for readers (_marks.lua) |
| T:ranked:TOPIC       | zset | the ready jobs whose priority is not the usual one: due ms, length of the id and id   |
|                      |      | -> priority (_ready.lua)                                                              |
| T:called:TOPIC       | zset | the ready jobs with a call, in the same way                                           |
| T:called_topics      | zset | topic that has some -> ms from which on pop looks at it                               |
| T:grouped:TOPIC      | zset | the ready jobs of groups, all with the score 0: length of the group, group, \\0,       |
|                      |      | priority, due ms, ms of its push, length of the id, id (_groups.lua)                  |
| T:turns:TOPIC        | zset | group that waits for its turn in this round -> ms since when                          |
| T:next:TOPIC         | zset | group that had its turn in this round and has more -> ms since when                   |
| T:held:TOPIC         | zset | group with ready jobs of which none may be taken now -> ms since when                 |
| T:rested:TOPIC       | zset | groups that had their turn in this round and had no more then, and since when         |
| T:called_grouped:TOPIC     | zset | the same for jobs with a call                                                   |
| T:called_turns:TOPIC       | zset |                                                                                 |
| T:called_next:TOPIC        | zset |                                                                                 |
| T:called_held:TOPIC        | zset |                                                                                 |
| T:called_rested:TOPIC      | zset |                                                                                 |
| T:hand:TOPIC         | zset | the reserved jobs of groups, all with the score 0: length of the group, group, \\0, id |
| T:first:TOPIC        | hash | group whose order is strict -> id of its job that failed: the others wait for it      |
| T:priorities         | hash | id -> priority; of all jobs with a call, a group or another priority than the usual   |
|                      |      | one, ready or not                                                                     |
| T:reserved:TOPIC     | zset | id -> deadline ms                                                                     |
| T:buried:TOPIC       | zset | id -> ms when it was buried                                                           |
| T:expire:TOPIC       | zset | id -> ms when an undelivered job expires; only of jobs with `expire`                  |
| T:ended              | hash | id -> state, ms, message, run, record; only of jobs with `retain`                     |
| T:done:TOPIC         | zset | id -> ms when the kept record is dropped                                              |
| T:tag:TAG            | set  | ids, including those of kept records                                                  |
| T:timers             | zset | topic -> ms of the earliest score among its delayed, reserved, expire, done           |
| T:topics             | hash | topic -> settings (JSON, "" = none)                                                   |
| T:rates              | hash | topic with a rate -> ms at which its whole burst is available again (_limits.lua)     |
| T:broken             | zset | id -> ms when its unreadable record was set aside                                     |
| T:aside:MS:KEY       | any  | the former value of T:KEY, which had the wrong type (inspect.lua)                     |
| T:layout             | hash | of bucket 1 only: version, bucket_size, queue_name, scheduler, wheel_slots; id: a     |
|                      |      | unique name of this data; emptied, former, accepted, marked (watch.py); generation,   |
|                      |      | former_bucket_sizes, changing, changer, percent: for changes of the number of buckets |
|                      |      | (change.py); moving: if an older version changes it                                   |
| T:fence              | zset | "generation" -> that of the layout, or of a change under way; scripts from servers    |
|                      |      | with an older one are refused (change.py); "waited" comes and goes with calls that    |
|                      |      | wait for replicas (_call.lua); "mark ID" -> 0: the data's id (watch.py)               |
| T:parcel:BUCKET      | list | of an older version, as the two below: jobs on their way to that bucket               |
| T:sent               | hash | bucket -> number of the last parcel that was made for it                              |
| T:taken              | hash | bucket -> number of the last parcel that came from it                                 |
| T:numbers            | str  | of bucket 1 only: the last number that was given out (numbers.lua)                    |
| T:servers            | hash | of bucket 1 only: server process -> ms when it was last heard, figures (JSON)         |
| T:workers            | hash | of bucket 1 only: server process -> ms when it was last heard, the workers that it    |
|                      |      | has seen (JSON)                                                                       |
| T:holders:PROCESS    | hash | id -> receipt, name of the worker that holds it; PROCESS is the first part of the     |
|                      |      | receipts of a server process. It expires (hold.lua)                                   |
| T:history:MS:PLACE   | hash | of bucket 1 only: figures of topics in a slot of MS milliseconds; it expires          |
|                      |      | (_history.lua). T:history:marks is a list of "ms kind lasted server"                  |
| T:subscribers        | hash | of bucket 1 only, as the five below: name -> definition (JSON)                        |
| T:schedules          | hash | name -> definition (JSON)                                                             |
| T:notes              | hash | reason of dead letters -> what people say of them (JSON: text, by, at ms)             |
| T:schedule_times     | zset | name of a schedule -> ms of its next occurrence                                       |
| T:subscribers_paused | hash | name of a subscriber that is paused -> ms since when                                  |
| T:revisions          | hash | subscribers, schedules, notes -> number that grows with each change                   |
| T:subscriber_calls:NAME    | hash | succeeded HOUR, failed HOUR, ms HOUR -> calls of that hour since 1970, how long |
|                      |      | they took; ends a day after the last one                                              |
| T:subscriber_failures:NAME | list | the last calls that failed, newest first (JSON: at ms, id, message); for a week |
| T["TOPIC*", ...]     | no key: how a script is told which topics the client may reach (access.py)                   |
| T:ready              | pub/sub channel: "sender count topic" when jobs became ready, without a topic those with a   |
|                      | call; "sender 0 id" when an awaited one has ended: to an older version of the server, no job |
|                      | of a topic that nobody asks for                                                              |
"""

from dataclasses import dataclass


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

    @property
    def layout(self) -> str:
        """The hash with the data's layout."""
        return f"{self.tag}:layout"

    @property
    def fence(self) -> str:
        """The sorted set with the generation of the layout that scripts must know to work here."""
        return f"{self.tag}:fence"

    @property
    def topics(self) -> str:
        """The hash of the bucket's topics."""
        return f"{self.tag}:topics"

    def registered(self, kind: str) -> str:
        """The hash of the subscribers, the schedules or the notes."""
        return f"{self.tag}:{kind}"

    @property
    def ready_channel(self) -> str:
        """The pub/sub channel for jobs that became ready."""
        return f"{self.tag}:ready"
