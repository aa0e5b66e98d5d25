"""python -m bench.single: what one push after the other takes, µs, and whose processor time that is.

By the Python clients, by a bare socket over HTTP and by one through beanstalkd's protocol, in turn, on a server and a
Redis of its own. Medians of the rounds, and the shortest one.
"""

import argparse
import asyncio
import itertools
import os
import secrets
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.processes import cpu_seconds, free_port, listeners, program
from bench.target import own_server, redis_command
from delayqueue import AsyncClient, Client

TOPIC: Final = "bench"
DELAY_S: Final = 86_400
ANSWER_BYTES: Final = 65_536

Push = Callable[[int], None]  # so many, one after the other


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.single", description=__doc__)
    parser.add_argument("--pushes", type=int, default=2000, help="of a round")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    port, store_port, beanstalk_port = free_port(), free_port(), free_port()
    options = {"beanstalk_address": f"127.0.0.1:{beanstalk_port}"}
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        program(redis_command(store_port), store_port, Path(folder)),
        own_server(Path(folder), port, store_port, options),
    ):
        sides = _sides(port, beanstalk_port)
        programs = [[os.getpid()], listeners(port), listeners(store_port)]
        found = [
            (name, _measure(push, asked.pushes, programs))
            for _, (name, push) in itertools.product(range(asked.rounds), sides.items())
        ]
    print("| µs a push | median | shortest | client | server | Redis |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in sides:
        took, *used = zip(*(figures for side, figures in found if side == name), strict=True)
        columns = [statistics.median(took), min(took), *map(statistics.median, used)]
        print(f"| {name} | {' | '.join(f'{each:.0f}' for each in columns)} |")


def _measure(push: Push, pushes: int, programs: list[list[int]]) -> list[float]:
    """The time of a push, and the processor time of each program, µs."""
    before = time.perf_counter(), *map(cpu_seconds, programs)
    push(pushes)
    after = time.perf_counter(), *map(cpu_seconds, programs)
    return [1e6 * (end - begin) / pushes for begin, end in zip(before, after, strict=True)]


def _sides(port: int, beanstalk_port: int) -> dict[str, Push]:
    url = f"http://127.0.0.1:{port}"

    def by_client(pushes: int) -> None:
        with Client(url) as queue:
            for _ in range(pushes):
                queue.push(TOPIC, delay=DELAY_S)

    async def push_each(pushes: int) -> None:
        async with AsyncClient(url) as queue:
            for _ in range(pushes):
                await queue.push(TOPIC, delay=DELAY_S)

    def over_http(pushes: int) -> None:
        _ask(port, pushes, _request)

    def put(pushes: int) -> None:
        _ask(beanstalk_port, pushes, lambda: b"put 1024 %d 60 0\r\n\r\n" % DELAY_S)

    return {
        "`Client`": by_client,
        "`AsyncClient`": lambda pushes: asyncio.run(push_each(pushes)),
        "a socket, /push": over_http,
        "a socket, put": put,
    }


def _request() -> bytes:
    job_id = secrets.token_hex(16).encode()
    body = b'{"topic":"bench","id":"%b","delay":%d,"ttr":60,"body":""}' % (job_id, DELAY_S)
    return b"POST /push HTTP/1.1\r\nHost: bench\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def _ask(port: int, times: int, request: Callable[[], bytes]) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(times):
            connection.sendall(request())
            connection.recv(ANSWER_BYTES)


if __name__ == "__main__":
    main()
