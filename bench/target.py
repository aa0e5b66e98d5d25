"""What is measured: running servers, and our own on its own store."""

import contextlib
import http.client
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from redis import Redis

from bench.processes import BenchError, free_port, program, wait_until

OURS, ORIGINAL = "ours", "original"
DELAY_QUEUE = (str(Path(sys.executable).with_name("delay-queue")),)
REPLICATES_S = 20.0
SCRIPT_CALLS = {"cmdstat_fcall", "cmdstat_fcall_ro", "cmdstat_evalsha", "cmdstat_evalsha_ro"}
# the last arguments of a script that is called without a server: until when, the generation of the layout and who calls
SCRIPT_TERMS = (9_999_999_999_999, "0 bench")
SLOW_ENTRIES = 10_000
OUR_TIMERS = "{dq_bucket_1}:timers"
# the ready list of a topic, by protocol (protocol.lua)
READY_LISTS = {
    OURS: "{{dq_bucket_1}}:dq_queue_{topic}",
    ORIGINAL: "dq_queue_{topic}",
    "lmstfy": "q/bench/{topic}",
    "seqdelay": "seqdelay:{{{topic}}}:ready",
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

    def memory(self, pattern: str) -> int:
        """Bytes of all keys with names like this."""
        keys = self._redis.scan_iter(pattern)
        return sum(self._redis.memory_usage(key, samples=0) or 0 for key in keys)

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

    def script_calls(self) -> int:
        """How many scripts were called so far."""
        found: Any = self._redis.info("commandstats")
        return sum(each["calls"] for name, each in found.items() if name in SCRIPT_CALLS)

    def commands(self) -> int:
        """How many commands it has run so far, those of scripts included."""
        found: Any = self._redis.info("commandstats")
        return sum(each["calls"] for each in found.values())

    def flush(self) -> None:
        """Remove all data of this database."""
        self._redis.flushdb()


@dataclass(frozen=True, slots=True)
class Server:
    """A running server.

    `protocol` is a key of protocol.lua; without `store` or `beanstalk_port` some measures are not possible.
    """

    port: int
    protocol: str
    store: StoreView | None
    beanstalk_port: int | None = None

    @property
    def url(self) -> str:
        """Where wrk sends the load."""
        return f"http://127.0.0.1:{self.port}"

    def seen(self) -> StoreView:
        """The store. Raises BenchError if its address was not given."""
        if self.store is None:
            raise BenchError("needs to look into its Redis: add --redis NAME=redis://HOST:PORT/DB")
        return self.store

    def beanstalk(self) -> int:
        """Where it speaks beanstalkd's protocol. Raises BenchError if it does not."""
        if self.beanstalk_port is None:
            raise BenchError("does not speak beanstalkd's protocol")
        return self.beanstalk_port

    def ready(self, topic: str) -> int:
        """Number of ids in the topic's ready list."""
        return self.seen().list_length(READY_LISTS[self.protocol].format(topic=topic))


class Target(Protocol):
    """A name, and a server for the time of one measure."""

    @property
    def name(self) -> str: ...

    def running(self) -> contextlib.AbstractContextManager[Server]: ...


@dataclass(frozen=True, slots=True)
class Foreign:
    """A server that somebody else started. `flush` allows emptying its database before a measure."""

    name: str
    url: str
    redis_url: str | None
    flush: bool

    @contextlib.contextmanager
    def running(self) -> Iterator[Server]:
        """The server as it is. Raises BenchError if it does not answer."""
        protocol, _, url = self.url.rpartition("+")
        port = urlsplit(url).port
        if port is None or urlsplit(url).hostname not in {"127.0.0.1", "localhost"}:
            raise BenchError(f"{self.name}: {url}: must be http://127.0.0.1:PORT")
        store = StoreView(self.redis_url) if self.redis_url else None
        if self.flush and store:
            store.flush()
        yield Server(port, protocol or _recognise(port), store)


@dataclass(frozen=True, slots=True)
class Own:
    """Our server, started for each measure with `options` (config keys), on an empty Redis and its replicas."""

    name: str
    options: dict[str, str]
    replicas: int = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[Server]:
        """Start Redis, append-only file on, and the server; stop both and remove the data."""
        port, store_port = free_port(), free_port()
        more = {"appendfsync": "always"} if "fsync" in self.options.get("durability", "") else {}
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
            stack.enter_context(program(redis_command(store_port, more), store_port, folder))
            store = StoreView(f"redis://127.0.0.1:{store_port}/1")
            for number in range(self.replicas):
                own, following = folder / f"replica-{number}", free_port()
                own.mkdir()
                command = redis_command(
                    following, more | {"dir": str(own), "replicaof": f"127.0.0.1 {store_port}"}
                )
                stack.enter_context(program(command, following, own))
            wait_until(lambda: store.followed_by() >= self.replicas, "replicas", REPLICATES_S)
            beanstalk_port = free_port()
            options = {
                "beanstalk_address": f"127.0.0.1:{beanstalk_port}",
                "webhook_allow": "127.0.0.1/32",
                "calls": "yes",
                "call_allow": "127.0.0.0/8",
            } | self.options
            stack.enter_context(own_server(folder, port, store_port, options))
            yield Server(port, OURS, store, beanstalk_port)


@dataclass(frozen=True, slots=True)
class Beanstalkd:
    """beanstalkd, started for each measure, with its own log: what it has accepted survives its end."""

    name: str

    @contextlib.contextmanager
    def running(self) -> Iterator[Server]:
        """Start it; stop it and remove the data."""
        port = free_port()
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            # as it is installed: on disk every 50 ms
            command = ["beanstalkd", "-l", "127.0.0.1", "-p", str(port), "-b", folder]
            with program(command, port, Path(folder)):
                yield Server(port, "beanstalk", None, port)


@contextlib.contextmanager
def own_server(
    folder: Path,
    port: int,
    store_port: int,
    options: Mapping[str, str],
    command: Sequence[str] = DELAY_QUEUE,
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


def parse_target(text: str, redis_urls: dict[str, str], *, flush: bool) -> Target:
    """NAME=ADDRESS: http://127.0.0.1:PORT, lmstfy+http://..., beanstalkd, or self[:key=value,...]."""
    name, equals, address = text.partition("=")
    if not equals or "/" in name:
        name, address = urlsplit(text).netloc or text, text
    if address.partition(":")[0] == "self":
        pairs = [pair.partition("=") for pair in address.partition(":")[2].split(",") if pair]
        options = {key: value for key, _, value in pairs}
        return Own(name, options, int(options.pop("replicas", "0")))
    if address == "beanstalkd":
        return Beanstalkd(name)
    return Foreign(name, address, redis_urls.get(name), flush)


def redis_command(port: int, more: Mapping[str, str] | None = None) -> list[str]:
    """The command of a Redis with an append-only file, and with these options of Redis."""
    # its own append-only file is the point; snapshots would only add noise
    options = {"port": str(port), "bind": "127.0.0.1", "appendonly": "yes", "save": ""}
    options |= more or {}
    return ["redis-server", *(word for key in options for word in (f"--{key}", options[key]))]


def _recognise(port: int) -> str:
    """Ours answers /healthz; the original has no such path."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        client.request("GET", "/healthz")
        return OURS if client.getresponse().status == http.HTTPStatus.OK else ORIGINAL
    except OSError as error:
        raise BenchError(f"nobody answers at http://127.0.0.1:{port}: {error}") from None
    finally:
        client.close()
