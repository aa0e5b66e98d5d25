"""Every key that the store uses. The scripts build the same names (scripts/_prelude.lua).

All keys of a bucket begin with its tag `T`, which is one Redis Cluster hash tag: `{dq_bucket_1}`.

| key                  | type | member or field -> score or value                                                     |
| -------------------- | ---- | ------------------------------------------------------------------------------------- |
| T:job                | hash | id -> record (record.py): the job as pushed, with its present due time                |
| T:run                | hash | id -> attempt, receipt, results, notes; only of jobs that were handed out             |
| T:delay:TOPIC        | zset | id -> due ms                                                                          |
| T:slot:N:TOPIC       | zset | with the wheel in place of T:delay: id -> ms that slot N was under the hand since     |
|                      |      | 1970: due // 1 h * slot ms + due % slot ms                                            |
| T:wheel:TOPIC        | zset | slot -> due ms of its first job                                                       |
| T:rounds:TOPIC       | hash | due // 1 h -> delayed jobs; "all" -> of all rounds                                    |
| T:dq_queue_TOPIC     | list | ids that are ready; the name comes from `queue_name`. May hold ghosts: ids whose job  |
|                      |      | was deleted, replaced or taken since                                                  |
| T:ghosts             | hash | topic -> number of ghosts in its ready list                                           |
| T:ranked:TOPIC       | zset | the ready jobs with another priority than the usual one, due ms, length of the id and |
|                      |      | id -> priority (_ready.lua)                                                           |
| T:priorities         | hash | id -> priority; of all jobs with another one than the usual one, ready or not         |
| T:reserved:TOPIC     | zset | id -> deadline ms                                                                     |
| T:buried:TOPIC       | zset | id -> ms when it was buried                                                           |
| T:expire:TOPIC       | zset | id -> ms when an undelivered job expires; only of jobs with `expire`                  |
| T:ended              | hash | id -> state, ms, message, run, record; only of jobs with `retain`                     |
| T:done:TOPIC         | zset | id -> ms when the kept record is dropped                                              |
| T:tag:TAG            | set  | ids, of kept records too                                                              |
| T:timers             | zset | topic -> ms of the earliest score among its delayed, reserved, expire, done           |
| T:topics             | hash | topic -> settings (JSON, "" = none)                                                   |
| T:rates              | hash | topic with a rate -> ms at which its whole burst is there again (_limits.lua)         |
| T:broken             | zset | id -> ms when its unreadable record was set aside                                     |
| T:aside:MS:KEY       | any  | what stood at T:KEY and was of another type than that should be (inspect.lua)         |
| T:layout             | hash | of bucket 1 only: version, bucket_size, queue_name, scheduler, wheel_slots; id: a     |
|                      |      | name of this data that no other has, once an import asked for it; generation,         |
|                      |      | former_bucket_sizes, moving: of changes of the number of buckets (layout.py)          |
| T:fence              | zset | "generation" -> that of the layout; scripts of servers that know an older are         |
|                      |      | refused; "waited" comes and goes with calls that wait for replicas (_prelude.lua)     |
| T:parcel:BUCKET      | list | number of the parcel, then id, place, ms, record, run of each job that is on its way  |
|                      |      | to that bucket                                                                        |
| T:sent               | hash | bucket -> number of the last parcel that was made for it                              |
| T:taken              | hash | bucket -> number of the last parcel that came from it                                 |
| T:numbers            | str  | of bucket 1 only: the last number that was given out (numbers.lua)                    |
| T:servers            | hash | of bucket 1 only: server process -> ms when it was heard last, figures (JSON)         |
| T:history:MS:PLACE   | hash | of bucket 1 only: figures of topics in a slot of so many ms; it expires               |
|                      |      | (_history.lua). T:history:marks is a list of "ms kind lasted server"                  |
| T:subscribers        | hash | of bucket 1 only, as the four below: name -> definition (JSON)                        |
| T:schedules          | hash | name -> definition (JSON)                                                             |
| T:schedule_times     | zset | name of a schedule -> ms of its next occurrence                                       |
| T:subscribers_paused | hash | name of a subscriber that is paused -> ms since when                                  |
| T:revisions          | hash | subscribers, schedules -> number that grows with each change of them                  |
| T:subscriber_calls:NAME    | hash | succeeded HOUR, failed HOUR, ms HOUR -> calls of that hour since 1970, how long |
|                      |      | they took; ends a day after the last one                                              |
| T:subscriber_failures:NAME | list | the last calls that failed, newest first (JSON: at ms, id, message); for a week |
| T["TOPIC*", ...]     | no key: how a script hears of the topics that the client is confined to (access.py)          |
| T:ready              | pub/sub channel: "sender count topic" when jobs became ready                                 |
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BucketKeys:
    """The names that Python passes to the scripts or reads itself."""

    tag: str
    queue_name: str  # with %s for the topic

    @classmethod
    def of(cls, bucket: int, bucket_name: str, queue_name: str) -> "BucketKeys":
        """Names of bucket number `bucket` (from 1, as the original counts). `bucket_name` holds %d, `queue_name` %s."""
        tag = "{" + bucket_name.replace("%d", str(bucket)) + "}"
        return cls(tag, f"{tag}:{queue_name}")

    @property
    def layout(self) -> str:
        """The hash that says how the data was laid out."""
        return f"{self.tag}:layout"

    @property
    def fence(self) -> str:
        """The sorted set that says by which generation of the layout scripts may work here."""
        return f"{self.tag}:fence"

    @property
    def topics(self) -> str:
        """The hash of the topics that the bucket knows."""
        return f"{self.tag}:topics"

    def registered(self, kind: str) -> str:
        """The hash of the subscribers or schedules."""
        return f"{self.tag}:{kind}"

    @property
    def ready_channel(self) -> str:
        """The pub/sub channel of jobs that became ready."""
        return f"{self.tag}:ready"
