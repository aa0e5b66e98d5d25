"""A server whose store keeps it from starting says why: one line; tests/unit/test_cli.py has what else does."""

import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.api_client import open_api
from tests.processes import (
    LOOPBACK,
    START_S,
    Processes,
    QueueServer,
    StoreServer,
    free_port,
    run_program,
)
from tests.waiting import until

PASSWORD: Final = "right:horse/battery@staple"


class Program:
    """The program with a config file of these lines."""

    def __init__(self, folder: Path, *lines: str) -> None:
        self.file = folder / "delay-queue.conf"
        self._given = lines
        # settings that a test leaves out must not touch other programs on this machine
        safe = {"bind_address": f"{LOOPBACK}:{free_port()}", "redis.host": f"{LOOPBACK}:1"}
        named = {line.partition("=")[0].strip() for line in lines}
        added = [f"{key} = {value}" for key, value in safe.items() if key not in named]
        self._lines = ["; a comment", *lines, *added]
        self.file.write_text("\n".join(self._lines) + "\n", encoding="utf-8")

    def run(self, *arguments: str, **variables: object) -> subprocess.CompletedProcess[str]:
        return run_program(
            *("-c", str(self.file), *arguments), settings=variables, directory=self.file.parent
        )

    def refusal(self, *arguments: str, **variables: object) -> str:
        """The one line that it ends with."""
        ended = self.run(*arguments, **variables)
        assert ended.returncode != 0, ended
        lines = ended.stderr.splitlines()
        assert len(lines) == 1, ended.stderr
        assert "Traceback" not in ended.stderr
        return lines[0]

    def place_of(self, key: str) -> str:
        """FILE:LINE of the key."""
        keys = [line.partition("=")[0].strip() for line in self._lines]
        return f"{self.file}:{keys.index(key) + 1}: {key}"


def test_an_unreachable_redis_is_named_and_nothing_takes_its_place(tmp_path: Path) -> None:
    """A server comes up and waits for it (test_unwell_stores.py)."""
    address = f"{LOOPBACK}:{free_port()}"
    program = Program(tmp_path, f"redis.host = {address}", f"data_dir = {tmp_path / 'data'}")
    refusal = program.refusal("check")
    assert program.place_of("redis.host") in refusal
    assert address in refusal
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("given", ["", "guessed"], ids=["no password", "wrong password"])
@pytest.mark.parametrize("verb", [[], ["check"]], ids=["serve", "check"])
def test_a_wrong_password_is_named_and_not_shown(
    tmp_path: Path, locked_store: StoreServer, verb: list[str], given: str
) -> None:
    lines = [f"redis.host = {locked_store.address}", f"redis.password = {given}"]
    program = Program(tmp_path, *lines)
    refusal = program.refusal(*verb)
    assert program.place_of("redis.host") in refusal
    assert "correct redis.password" in refusal
    assert "guessed" not in refusal


@pytest.fixture(scope="module")
def locked_store(processes: Processes) -> StoreServer:
    return processes.redis("--requirepass", PASSWORD)


async def test_the_right_password_opens_the_store(
    processes: Processes, locked_store: StoreServer
) -> None:
    server = processes.server(locked_store, redis__password=PASSWORD)
    async with open_api(server.url) as api:
        (await api.push(topic="t", id="a")).ok()
    server.close()


OTHER_LAYOUTS: Final = {
    "more buckets": ("bucket_size", 1, 2),
    "fewer buckets": ("bucket_size", 4, 1),
    "a wheel over sorted sets": ("scheduler", "zset", "wheel"),
    "sorted sets over a wheel": ("scheduler", "wheel", "zset"),
}


@pytest.mark.parametrize("change", OTHER_LAYOUTS.values(), ids=OTHER_LAYOUTS.keys())
async def test_another_layout_on_existing_data_is_refused(
    processes: Processes,
    redis_server: StoreServer,
    tmp_path: Path,
    change: tuple[str, Any, Any],
) -> None:
    key, was, now = change
    database = redis_server.new_database()
    server = processes.server(redis_server, redis__db=database, **{key: was})
    async with open_api(server.url) as api:
        (await api.push(topic="t", id="kept", delay=3600)).ok()
    server.stop()
    lines = [f"redis.host = {redis_server.address}", f"redis.db = {database}"]
    program = Program(tmp_path, *lines, f"{key} = {now}")
    refusal = program.refusal()
    assert f"{program.place_of(key)} = {now}" in refusal
    assert f"set {key} = {was}" in refusal
    server.start()
    async with open_api(server.url) as api:
        assert (await api.get("kept")).ok()["id"] == "kept"
    server.close()


@pytest.fixture(scope="module")
def embedded_server(processes: Processes) -> QueueServer:
    return processes.server()


def test_a_port_in_use_is_refused_before_a_store_is_started(
    tmp_path: Path, embedded_server: QueueServer
) -> None:
    program = Program(
        tmp_path, f"bind_address = {embedded_server.address}", "redis.host = embedded"
    )
    place = program.place_of("bind_address")
    refusal = program.refusal()
    assert f"{place} = {embedded_server.address}" in refusal
    assert refusal.endswith(
        f"or choose another port, as with DELAYQUEUE_BIND_ADDRESS={LOOPBACK}:PORT"
    )
    assert not (tmp_path / "data").exists()


async def test_a_server_whose_store_still_loads_ends_when_it_is_told_to(
    processes: Processes, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    program = tmp_path / "store"  # it never answers
    program.write_text(f"#!/bin/sh\n: > {begun}\nexec sleep 600\n", encoding="ascii")
    program.chmod(0o755)
    server = processes.configured("redis.host = embedded\n", None, redis__binary=program)
    server.launch()
    await until(begun.exists, within_s=START_S)
    assert server.stop() == 0
