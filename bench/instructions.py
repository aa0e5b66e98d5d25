"""python -m bench.instructions: instructions of Redis for a call alone, as callgrind counts them, whatever else runs.

On a Redis of its own under valgrind, which must be installed. What the connection and the call itself take counts, too.
"""

import itertools
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from redis import Redis

from bench.processes import BenchError, running, wait_until
from bench.target import SCRIPT_TERMS, redis_command
from delayqueue.store.scripts import ZSET

KEYS: Final = ("{dq_bucket_1}", "{dq_bucket_1}:dq_queue_%s")
STORED: Final = 1_000  # jobs before it is measured: a small hash is of another kind
CALLS: Final = 300
BATCH: Final = 100
TTR_MS: Final = 86_400_000  # longer than this takes, however slow
LATER: Final = "+86400000"
NOW: Final = "+0"
STARTS_S: Final = 60.0
WRITTEN_S: Final = 30.0
TOTALS: Final = re.compile(r"^totals: (\d+)$", re.MULTILINE)

Act = Callable[[], object]


class Counted:
    """A Redis under callgrind."""

    def __init__(self, redis: Redis, folder: Path, pid: int) -> None:
        self._redis = redis
        self._folder, self._pid = folder, pid
        self._parts = itertools.count(1)
        self._ids = (f"job-{number:08}" for number in itertools.count())

    def call(self, verb: str, *args: object) -> Any:
        """Call a verb's function."""
        redis: Any = self._redis
        words = (ZSET.function(verb), len(KEYS), *KEYS, *args, *SCRIPT_TERMS)
        return redis.execute_command("FCALL", *words)

    def push(self, topic: str, when: str, jobs: int = 1) -> None:
        """Push jobs, in one call."""
        job = (topic, when, TTR_MS, 0, 0, "replace", "", "b" * 40)
        self.call("push", *(word for _ in range(jobs) for word in (next(self._ids), *job)))

    def reserved(self, topic: str, receipt: str) -> Iterator[str]:
        """Reserve the topic's jobs, as many as are taken: a call gives only some."""
        while True:
            reply: Any = self.call("pop", receipt, BATCH, 0, 1, topic)
            yield from reply[6][::3]

    def of(self, act: Act) -> float:
        """Instructions of each, after a first one."""
        act()
        self._counted()
        for _ in range(CALLS):
            act()
        return self._counted() / CALLS

    def _counted(self) -> int:
        """Instructions since the last time."""
        path = self._folder / f"counted.{next(self._parts)}"
        subprocess.run(["callgrind_control", "-d", str(self._pid)], check=True, capture_output=True)

        def total() -> re.Match[str] | None:
            self._redis.ping()  # valgrind looks for orders now and then while the program runs
            return TOTALS.search(path.read_text()) if path.exists() else None

        wait_until(lambda: total() is not None, "callgrind", WRITTEN_S)
        found = total()
        return int(found[1]) if found else 0


def instructions() -> dict[str, float]:
    """Instructions of Redis for a call of each verb. Raises BenchError without valgrind."""
    if shutil.which("valgrind") is None:
        raise BenchError("valgrind is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder, socket = Path(name), f"{name}/socket"
        options = {"unixsocket": socket, "hz": "1", "appendonly": "no"}
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/counted"]
        command = valgrind + redis_command(0, options)
        with (
            running(command, folder / "log") as child,
            Redis(unix_socket_path=socket, socket_timeout=STARTS_S) as redis,
        ):
            wait_until(Path(socket).exists, "Redis under valgrind", STARTS_S)
            redis.function_load(ZSET.library.source)
            return dict(_measured(Counted(redis, folder, child.pid)))


def _measured(counted: Counted) -> Iterator[tuple[str, float]]:
    for topic, when in (("later", LATER), ("now", NOW)):
        for _ in range(STORED // BATCH):
            counted.push(topic, when, BATCH)
    yield "push", counted.of(lambda: counted.push("later", LATER))
    yield "push, ready", counted.of(lambda: counted.push("now", NOW))
    yield "pop", counted.of(lambda: counted.call("pop", "receipt", 1, 0, 1, "now"))
    yield "pop, nothing", counted.of(lambda: counted.call("pop", "receipt", 1, 0, 1, "none"))
    ids = iter(list(itertools.islice(counted.reserved("now", "again"), CALLS + 1)))
    yield "finish", counted.of(lambda: counted.call("finish", next(ids), "again", ""))
    yield "tick, nothing", counted.of(lambda: counted.call("tick", 2000))


def main() -> None:
    """Print a table."""
    began_at = time.monotonic()
    print("| alone | instructions of Redis |\n| --- | --- |")
    for verb, count in instructions().items():
        print(f"| {verb} | {count:,.0f} |")
    print(f"\n{time.monotonic() - began_at:.0f} s")


if __name__ == "__main__":
    main()
