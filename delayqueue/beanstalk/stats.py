"""The answers in YAML."""

import os
import re
import resource
from collections.abc import Iterable, Mapping, Sequence
from time import time
from typing import Final

from delayqueue import __version__
from delayqueue.beanstalk.server import LOST, BeanstalkServer
from delayqueue.domain.job import State
from delayqueue.store.census import TopicView
from delayqueue.store.types import JobView

# The messages of jobs that a connection puts back, and of the timer. They tell apart what is counted for a job.
RELEASED: Final = "released"
BURIED: Final = "buried"
TIMED_OUT: Final = "ttr expired"

# Numbers, as YAML reads them; beanstalkd quotes everything since 1.13 and nothing before, and some clients do not
# understand quotes.
_PLAIN: Final = re.compile(
    r"(?!(?:true|false|yes|no|on|off|null|y|n)$)[A-Za-z][A-Za-z0-9+/.$_();-]*", re.I
)


def yaml_list(names: Iterable[str]) -> bytes:
    """A YAML list of names."""
    return _ok("".join(f"- {name}\n" for name in names))


def yaml_map(values: Mapping[str, object]) -> bytes:
    """A YAML map."""
    return _ok("".join(f"{key}: {value}\n" for key, value in values.items()))


def _ok(lines: str) -> bytes:
    data = b"---\n" + lines.encode()
    return b"OK %d\r\n%b\r\n" % (len(data), data)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _name(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else _quoted(text)


def job_stats(number: int, job: JobView, held_s: float | None) -> bytes:
    """The statistics of a job; the asking connection holds it for `held_s` more seconds, None = it does not."""
    now_ms = time() * 1000
    since_ms = round(job.attempts[-1].ended * 1000) if job.attempts else job.created_ms
    left_ms = 0.0
    buries = _ended_by(BURIED, job)
    if job.state is State.DELAYED:
        left_ms = job.ready_ms - now_ms
    elif held_s is not None:
        left_ms = held_s * 1000
    elif job.state is State.RESERVED and job.started_ms is not None:  # and it was not touched
        left_ms = job.started_ms + job.ttr_ms - now_ms
    return yaml_map(
        {
            "id": number,
            "tube": _name(job.topic),
            "state": job.state.value,
            "pri": job.priority,
            "age": int(max(0, now_ms - job.created_ms) / 1000),
            "delay": max(0, round((job.due_ms - since_ms) / 1000)),
            "ttr": job.ttr_ms // 1000,
            "time-left": int(max(0, left_ms) / 1000),
            "file": 0,
            "reserves": job.attempt + job.remarks.count(LOST),
            "timeouts": _ended_by(TIMED_OUT, job),
            "releases": _ended_by(RELEASED, job),
            "buries": buries,
            "kicks": buries - (job.state is State.BURIED),
        }
    )


def _ended_by(message: str, job: JobView) -> int:
    return sum(attempt.message == message for attempt in job.attempts)


def tube_stats(server: BeanstalkServer, topic: TopicView) -> bytes:
    """The statistics of a tube. Jobs are the store's, all else is this process's."""
    name = topic.topic
    tube = server.tubes.find(name)
    watching = [session for session in server.sessions if session.watches(name)]
    left_s = 0.0
    if topic.paused_until_ms:
        left_s = max(0.0, topic.paused_until_ms / 1000 - time())
    return yaml_map(
        {
            "name": _name(name),
            **_jobs([topic]),
            "total-jobs": tube.puts if tube else 0,
            "current-using": tube.users if tube else 0,
            "current-watching": len(watching),
            "current-waiting": sum(session.leave is not None for session in watching),
            "cmd-delete": tube.deletes if tube else 0,
            "cmd-pause-tube": tube.pauses if tube else 0,
            "pause": max(int(left_s), tube.pause_s if tube else 0) if left_s else 0,
            "pause-time-left": int(left_s),
        }
    )


def _jobs(topics: Sequence[TopicView]) -> dict[str, int]:
    return {
        f"current-jobs-{kind}": sum(getattr(topic, kind) for topic in topics)
        for kind in ("urgent", "ready", "reserved", "delayed", "buried")
    }


# The commands that are counted, as in beanstalkd: kick-job and reserve-job are not.
SHOWN: Final = (
    *("put", "peek", "peek-ready", "peek-delayed", "peek-buried"),
    *("reserve", "reserve-with-timeout"),
    *("delete", "release", "use", "watch", "ignore", "bury", "kick", "touch", "stats", "stats-job"),
    *("stats-tube", "list-tubes", "list-tube-used", "list-tubes-watched", "pause-tube"),
)


def server_stats(server: BeanstalkServer, topics: Sequence[TopicView]) -> bytes:
    """The statistics of the server. Jobs are the store's, all else is this process's."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    sessions = server.sessions
    system = os.uname()
    return yaml_map(
        {
            **_jobs(topics),
            **{f"cmd-{name}": server.counts[name] for name in SHOWN},
            "job-timeouts": server.tubes.timeouts,
            "total-jobs": server.puts,
            "max-job-size": server.access.most_bytes,
            "current-tubes": len(server.all_tubes(topics)),
            "current-connections": len(sessions),
            "current-producers": sum(session.is_producer for session in sessions),
            "current-workers": sum(session.is_worker for session in sessions),
            "current-waiting": sum(session.leave is not None for session in sessions),
            "total-connections": server.connected,
            "pid": os.getpid(),
            "version": _quoted(__version__),
            "rusage-utime": f"{usage.ru_utime:.6f}",
            "rusage-stime": f"{usage.ru_stime:.6f}",
            "uptime": int(server.loop.time() - server.began_s),
            "binlog-oldest-index": 0,
            "binlog-current-index": 0,
            "binlog-records-migrated": 0,
            "binlog-records-written": 0,
            "binlog-max-size": 10485760,
            "draining": str(server.is_draining).lower(),
            "id": server.id,
            "hostname": _quoted(system.nodename),
            "os": _quoted(system.version),
            "platform": _quoted(system.machine),
        }
    )
