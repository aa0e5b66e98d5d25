"""The directory of the embedded store: one server at a time, and nothing in it that the store would pass over."""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from delayqueue.config.startup import StartupError

# After this time, a killed server's child still in the directory counts as another server.
LOCK_WAIT_S: Final = 2.0
POLL_S: Final = 0.02

# Names the program that wrote the data. Another one may not be able to read it (Redis 7 cannot read Valkey 9's files),
# and `make test` may put one on the PATH.
PROGRAM: Final = "program"
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
    return os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)


@contextmanager
def naming(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StartupError(
            f"data_dir = {directory}: {error.strerror}; choose a writable directory",
            key="data_dir",
        ) from None


async def _lock(descriptor: int, directory: Path) -> None:
    deadline = time.monotonic() + LOCK_WAIT_S
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            raise StartupError(
                f"data_dir = {directory}: in use by process {holder or 'unknown'}; "
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
