"""Records what the server sends to its store for a seeded workload of all verbs: `python -m tests.stream > a.txt`.

A redesign of the store's way keeps this stream: run it before and after, and compare. A line is a call that the server
made for a request: the verb, the keys and the arguments. What differs from run to run is left out or named: the hash of
the library, the limit of the call's time, random parts of receipts, and the last word, which is the store's own affair
(`begin` in _call.lua). What the server does by itself, such as ticks, is left out.
"""

import http.client
import json
import random
import re
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Final

from tests.processes import Processes, QueueServer, StoreServer

# the server's own: they come when it likes
BY_ITSELF: Final = frozenset(
    [
        "tick",
        "sweep",
        "inspect",
        "hold",
        "heartbeat",
        "servers",
        "add_history",
        "registry_state",
        "due_schedules",
        "registered",
    ]
)
CALL: Final = re.compile(
    r'^[\d.]+ \[\d+ [^l][^]]*\] "FCALL(?:_RO)?" "delayqueue_[0-9a-f]+_(\w+)" (.*)$'
)
WORD: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
RANDOM: Final = re.compile(r"\b[0-9a-f]{12,}(?:-[0-9a-f]+)?\b|\b1[789]\d{8,11}(?:\.\d+)?\b")
TOPICS: Final = ("a", "b", "c")


def requests(seed: int, count: int) -> Iterator[tuple[str, Any]]:
    """The workload: paths and bodies. A receipt of None stands for that of the job in hand."""
    at = random.Random(seed)
    ids = [f"order-{number}" for number in range(40)]

    def some(most: int = 4) -> list[str]:
        return at.sample(ids, at.randint(1, most))

    def job() -> dict[str, Any]:
        fields: dict[str, Any] = {
            "topic": at.choice(TOPICS),
            "id": at.choice(ids),
            "delay": at.choice((0, 0, 60, 3600)),
            "ttr": 600,
            "body": at.choice(("", "body", "日本", "x" * 500)),
        }
        more: dict[str, Any] = {
            "tags": [f"tag-{at.randint(1, 3)}"],
            "priority": at.choice((1, 4)),
            "retain": 600,
            "expire": 7200,
            "retry": {"delays": [30, 60]},
            "if_exists": at.choice(("replace", "keep", "fail")),
        }
        return fields | {name: more[name] for name in at.sample(sorted(more), at.randint(0, 3))}

    tag = {"tag": "tag-1"}
    verbs: list[tuple[int, str, Any]] = [
        (20, "push", job),
        (6, "push", lambda: [job() for _ in range(at.randint(2, 6))]),
        (12, "pop", lambda: {"topic": at.choice(TOPICS), "timeout": 0}),
        (4, "pop", lambda: {"topic": ",".join(TOPICS), "timeout": 0, "count": 3}),
        (8, "finish", lambda: {"id": at.choice(ids), "receipt": None}),
        (3, "finish", lambda: {"ids": some()}),
        (4, "delete", lambda: {"id": at.choice(ids)}),
        (2, "delete", lambda: {"ids": some()}),
        (4, "get", lambda: {"id": at.choice(ids)}),
        (2, "get", lambda: {"ids": some()}),
        (3, "release", lambda: {"id": at.choice(ids), "receipt": None, "delay": 5}),
        (3, "touch", lambda: {"id": at.choice(ids), "receipt": None}),
        (3, "bury", lambda: {"id": at.choice(ids), "receipt": None, "message": "no"}),
        (3, "kick", lambda: {"id": at.choice(ids)}),
        (1, "kick", lambda: {"topic": at.choice(TOPICS), "state": "delayed", "count": 2}),
        (1, "kick", lambda: tag | {"state": "buried"}),
        (2, "reschedule", lambda: {"id": at.choice(ids), "delay": 90}),
        (1, "reschedule", lambda: tag | {"delay": 120}),
        (1, "cancel", lambda: tag),
        (1, "purge", lambda: {"topic": at.choice(TOPICS), "state": "buried"}),
        (1, "pause", lambda: {"topic": "c", "length": 60}),
        (1, "resume", lambda: {"topic": "c"}),
        (1, "limit", lambda: {"topic": "b", "rate": 1000, "concurrency": 512}),
        (2, "list", lambda: {"topic": at.choice(TOPICS), "limit": 200}),
        (1, "list", lambda: {"tag": "tag-2"}),
        (1, "find", lambda: {"id": at.choice(ids)}),
        (1, "take", lambda: {"topic": at.choice(TOPICS), "start": 0, "end": 4_000_000_000}),
        (1, "topics", lambda: {"topic": at.choice(TOPICS)}),
        (1, "forecast", lambda: {"topic": "a", "start": 4e9, "end": 4e9 + 60, "step": 60}),
        (1, "buried", lambda: {"topic": at.choice(TOPICS)}),
    ]
    weights = [weight for weight, _, _ in verbs]
    for _ in range(count):
        [(_, path, body)] = at.choices(verbs, weights)
        yield path, body()


def send_all(server: QueueServer, seed: int, count: int) -> Iterator[str]:
    """Send the workload, one request after the other; the code of each answer."""
    held: dict[str, str] = {}  # id -> receipt
    connection = http.client.HTTPConnection(server.host, server.port)
    for path, body in requests(seed, count):
        if isinstance(body, dict) and body.get("receipt", "") is None:
            del body["receipt"]
            if held:
                body["id"], body["receipt"] = held.popitem()
        connection.request("POST", f"/{path}", json.dumps(body).encode())
        answer = json.loads(connection.getresponse().read())
        data = answer["data"] if path == "pop" else None
        for job in data if isinstance(data, list) else [data] if data else []:
            held[job["id"]] = job["receipt"]
        yield f"{path}: {answer['code']}"


def calls_in(monitored: str) -> Iterator[str]:
    """The server's calls for requests among the lines of MONITOR."""
    for line in monitored.splitlines():
        found = CALL.match(line)
        if found and found[1] not in BY_ITSELF:
            *words, _until, _control = WORD.findall(found[2])
            if found[1] == "get":  # for /list: jobs of the same millisecond come in any order
                words.sort()
            yield " ".join([found[1], *(RANDOM.sub("*", word) or "''" for word in words)])


def main() -> None:
    """Print the stream."""
    asked = ArgumentParser(description=__doc__)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--requests", type=int, default=2000)
    asked.add_argument("--buckets", type=int, default=1)
    options = asked.parse_args()
    with TemporaryDirectory() as root:
        processes = Processes(Path(root))
        try:
            store = processes.redis()
            server = processes.server(store, bucket_size=options.buckets, workers=1)
            seen = Path(root, "monitor")
            with seen.open("w") as output, redis_monitor(store, output):
                answers = list(send_all(server, options.seed, options.requests))
        finally:
            processes.close()
        calls = list(calls_in(seen.read_text()))
    sys.stdout.writelines(f"{line}\n" for line in [*answers, *calls])


@contextmanager
def redis_monitor(store: StoreServer, output: IO[str]) -> Iterator[None]:
    """Write what the store is told to a file meanwhile."""
    watcher = subprocess.Popen(["redis-cli", "-p", str(store.port), "MONITOR"], stdout=output)
    time.sleep(0.5)  # until it has begun
    try:
        yield
        time.sleep(0.5)
    finally:
        watcher.terminate()
        watcher.wait()


if __name__ == "__main__":
    main()
