"""A server whose store keeps it from starting says why: one line; tests/unit/test_cli.py has what else does."""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.api_client import open_api
from tests.processes import (
    LOOPBACK,
    Processes,
    QueueServer,
    StoreServer,
    free_port,
    run_program,
)


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

    def refusal(self) -> str:
        """The one line that it ends with."""
        ended = run_program("-c", str(self.file), settings={}, directory=self.file.parent)
        assert ended.returncode != 0, ended
        lines = ended.stderr.splitlines()
        assert len(lines) == 1, ended.stderr
        assert "Traceback" not in ended.stderr
        return lines[0]

    def place_of(self, key: str) -> str:
        """FILE:LINE of the key."""
        keys = [line.partition("=")[0].strip() for line in self._lines]
        return f"{self.file}:{keys.index(key) + 1}: {key}"


OTHER_LAYOUTS: Final = {
    "fewer buckets": ("bucket_size", 4, 1),
    "a wheel over sorted sets": ("scheduler", "zset", "wheel"),
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
    assert server.logged().count("new store: ") == 1


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
