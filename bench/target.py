"""What is measured: running servers, and our own on its own store."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from redis import Redis

from bench.processes import BenchError, program, wait_until
from tests.processes import free_port

OURS, ORIGINAL = "ours", "original"
DELAY_QUEUE = str(Path(sys.executable).with_name("delay-queue"))
REPLICATES_S = 20.0
SCRIPT_CALLS = {"cmdstat_fcall", "cmdstat_fcall_ro", "cmdstat_evalsha", "cmdstat_evalsha_ro"}
SLOW_ENTRIES = 10_000
OUR_TIMERS = "{dq_bucket_1}:timers"
# the ready list of a topic, by protocol (protocol.lua)
READY_LISTS = {
    OURS: "{{dq_bucket_1}}:dq_queue_{topic}",
    ORIGINAL: "dq_queue_{topic}",
}


class StoreView:
    """What the benchmark asks the Redis behind a server."""

    def __init__(self, url: str) -> None:
        self._redis = Redis.from_url(url, decode_responses=True)

    def list_length(self, key: str) -> int:
        """Length of a list; 0 if there is none."""
        return self._redis.llen(key)

    def info(self, field: str) -> Any:
        """A field of INFO."""
        return self._redis.info()[field]

    def followed_by(self) -> int:
        """How many replicas have all that was written."""
        return self._redis.wait(100, 1)

    def due_topics(self, now: float) -> int:
        """How many topics of ours have something due."""
        return self._redis.zcount(OUR_TIMERS, "-inf", int(now * 1000))

    def forget(self, slower_than_us: int = 0) -> None:
        """Reset the counts and times of calls; from now on, look at those that take longer than this."""
        self._redis.config_set("slowlog-log-slower-than", slower_than_us)
        self._redis.config_set("slowlog-max-len", SLOW_ENTRIES)
        self._redis.config_resetstat()
        self._redis.slowlog_reset()

    def hold_rewrites(self) -> None:
        """Let the append-only file grow: a rewrite stops the store for a moment, whatever calls it."""
        self._redis.config_set("auto-aof-rewrite-percentage", 0)

    def busy_ms(self) -> tuple[float, float]:
        """Time spent on all calls since then, and on the longest one; ms."""
        found: Any = self._redis.info("commandstats")
        outer = {name: each for name, each in found.items() if name in SCRIPT_CALLS}
        longest_us = max((entry["duration"] for entry in self._slow()), default=0)
        return sum(each["usec"] for each in outer.values()) / 1000, longest_us / 1000

    def slowest_verb(self) -> str:
        """The verb of the longest call since `forget`, or another command; "" if none was slow."""
        entries = self._slow()
        if not entries:
            return ""
        command: bytes = max(entries, key=lambda entry: entry["duration"])["command"]
        name, *words = command.decode(errors="replace").split()
        return words[0].split("_", 2)[-1] if name == "FCALL" else name

    def _slow(self) -> list[Any]:
        """The long calls since `forget`, without those that asked for them."""
        entries: Any = self._redis.slowlog_get(SLOW_ENTRIES)
        return [entry for entry in entries if not entry["command"].startswith(b"SLOWLOG")]

    def flush(self) -> None:
        """Remove all data of this database."""
        self._redis.flushdb()


@dataclass(frozen=True, slots=True)
class Server:
    """A running server with HTTP, and its store. `protocol` is a key of protocols.lua."""

    port: int
    protocol: str
    store: StoreView

    @property
    def url(self) -> str:
        """Where wrk sends the load."""
        return f"http://127.0.0.1:{self.port}"

    def ready(self, topic: str) -> int:
        """Number of ids in the topic's ready list."""
        return self.store.list_length(READY_LISTS[self.protocol].format(topic=topic))


class Target(Protocol):
    """A name, and a server for the time of one measure."""

    @property
    def name(self) -> str: ...

    def running(self) -> contextlib.AbstractContextManager[Server]: ...


@dataclass(frozen=True, slots=True)
class Original:
    """ouqiang/delay-queue, or a fork of it, started for each measure on an empty Redis."""

    name: str
    program: Path

    @contextlib.contextmanager
    def running(self) -> Iterator[Server]:
        """Start Redis and the server; stop both and remove the data."""
        port = free_port()
        with own_store() as (folder, store_port):
            config = folder / "delay-queue.conf"
            config.write_text(
                f"bind_address = 127.0.0.1:{port}\nredis.host = 127.0.0.1:{store_port}\n"
            )
            with program([str(self.program), "-c", str(config)], port, folder):
                yield Server(port, ORIGINAL, store_view(store_port))


@dataclass(frozen=True, slots=True)
class Own:
    """Our server, started for each measure with `options` (config keys), on an empty Redis and its replicas.

    `program`: that of another version, or of another Python.
    """

    name: str
    options: dict[str, str]
    replicas: int = 0
    program: str = DELAY_QUEUE

    @contextlib.contextmanager
    def running(self) -> Iterator[Server]:
        """Start Redis, append-only file on, and the server; stop both and remove the data."""
        port = free_port()
        more = {"appendfsync": "always"} if "fsync" in self.options.get("durability", "") else {}
        with contextlib.ExitStack() as stack:
            folder, store_port = stack.enter_context(own_store(more))
            store = store_view(store_port)
            for number in range(self.replicas):
                own, following = folder / f"replica-{number}", free_port()
                own.mkdir()
                command = redis_command(
                    following, more | {"dir": str(own), "replicaof": f"127.0.0.1 {store_port}"}
                )
                stack.enter_context(program(command, following, own))
            wait_until(lambda: store.followed_by() >= self.replicas, "replicas", REPLICATES_S)
            options = {"webhook_allow": "127.0.0.1/32"} | self.options
            stack.enter_context(own_server(folder, port, store_port, options, [self.program]))
            yield Server(port, OURS, store)


@contextlib.contextmanager
def own_store(more: Mapping[str, str] | None = None) -> Iterator[tuple[Path, int]]:
    """An empty Redis until the end of the block: a folder, which is removed then, and the port."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with program(redis_command(port, more), port, folder):
            yield folder, port


def store_view(port: int) -> StoreView:
    """The database that ours and the original take by default."""
    return StoreView(f"redis://127.0.0.1:{port}/1")


@contextlib.contextmanager
def own_server(
    folder: Path,
    port: int,
    store_port: int,
    options: Mapping[str, str],
    command: Sequence[str] = (DELAY_QUEUE,),
) -> Iterator[None]:
    """Our server on that port and Redis until the end of the block; `options` are config keys."""
    settings = {
        "bind_address": f"127.0.0.1:{port}",
        "redis.host": f"127.0.0.1:{store_port}",
        "log_level": "warning",
    }
    environ = os.environ | {
        "DELAYQUEUE_" + key.upper().replace(".", "_"): value
        for key, value in (settings | dict(options)).items()
    }
    with program(list(command), port, folder, environ):
        yield


def parse_target(text: str) -> Target:
    """NAME=self[:key=value,...] or NAME=PROGRAM. Raises BenchError if there is no such program."""
    name, equals, address = text.partition("=")
    if not equals or "/" in name or ":" in name:
        name, address = text, text
    if address.partition(":")[0] == "self":
        pairs = [pair.partition("=") for pair in address.partition(":")[2].split(",") if pair]
        options = {key: value for key, _, value in pairs}
        replicas, program_path = options.pop("replicas", "0"), options.pop("program", DELAY_QUEUE)
        return Own(name, options, int(replicas), program_path)
    path = Path(address).resolve()
    if not os.access(path, os.X_OK):
        raise BenchError(f"{address}: must be self[:key=value,...], or a program")
    return Original(name, path)


def redis_command(port: int, more: Mapping[str, str] | None = None) -> list[str]:
    """The command of a Redis with an append-only file, and with these options of Redis."""
    # its own append-only file is the point; snapshots would only add noise
    options = {"port": str(port), "bind": "127.0.0.1", "appendonly": "yes", "save": ""}
    options |= more or {}
    return ["redis-server", *(word for key in options for word in (f"--{key}", options[key]))]
