"""The processes of the measured servers as /proc shows them, and starting our own."""

import contextlib
import os
import resource
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

START_S = 60.0
STOP_S = 15.0
LISTENING, ESTABLISHED = "0A", "01"  # states in /proc/net/tcp
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """The benchmark cannot go on; the message is one line that names the problem and the fix."""


def raise_file_limit() -> int:
    """Allow this process and its children as many open files as the system permits; returns the number."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def wait_until(
    condition: Callable[[], bool], what: str, limit_s: float, look_s: float = 0.02
) -> None:
    """Return when `condition()` holds, which is checked every `look_s` seconds.

    Raises BenchError with `what` after `limit_s` seconds.
    """
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise BenchError(f"{what}: not within {limit_s:.0f} s")
        time.sleep(look_s)


@contextlib.contextmanager
def running(
    command: list[str], log_path: Path, environ: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `command` in the folder of its log until the end of the block."""
    with log_path.open("ab") as log:
        child = subprocess.Popen(
            command, cwd=log_path.parent, env=environ, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


@contextlib.contextmanager
def program(
    command: list[str], port: int, folder: Path, environ: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run `command` in `folder` from when it listens on `port` until the end of the block.

    Raises BenchError with the end of its output if it does not come up.
    """
    log_path = folder / f"{Path(command[0]).name}.log"
    with running(command, log_path, environ) as child:
        wait_until(lambda: listens(port) or child.poll() is not None, command[0], START_S)
        if child.poll() is not None:
            raise BenchError(f"{command[0]} ended: {log_path.read_text()[-400:]}")
        yield


def listens(port: int) -> bool:
    """Whether somebody accepts connections on this port of the loopback interface."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def listeners(port: int) -> list[int]:
    """Ids of the processes that listen on `port`; several if they share it.

    Raises BenchError if none can be seen.
    """
    sockets = {f"socket:[{row[9]}]" for row in _tcp_rows(port) if row[3] == LISTENING}
    pids = [pid for pid in _all_pids() if sockets & _open_files(pid)]
    if not pids:
        raise BenchError(f"no process of ours listens on port {port}: is it on another machine?")
    return pids


def connections(port: int) -> int:
    """Number of connections that clients have established to `port`."""
    return sum(row[3] == ESTABLISHED for row in _tcp_rows(port))


def resident_bytes(pids: list[int]) -> int:
    """Memory of the processes together, bytes."""
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * resource.getpagesize()


def open_files(pids: list[int]) -> int:
    """How many descriptors the processes have."""
    return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids)


class Memory:
    """The most memory that a process has held since this was made, beyond what it held then."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        Path(f"/proc/{pid}/clear_refs").write_text("5", "ascii")
        self._before = self._read("VmRSS")

    def growth(self) -> int:
        """How much, in bytes."""
        return self._read("VmHWM") - self._before

    def _read(self, name: str) -> int:
        lines = self._status.read_text("ascii").splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith(name))) * 1024


def cpu_seconds(pids: list[int]) -> float:
    """Processor time that the processes together have used, user and system, seconds."""
    ticks = 0
    for pid in pids:
        # the name, in parentheses, may contain spaces
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(after_name[11]) + int(after_name[12])
    return ticks / TICKS_PER_S


def interruptions(pid: int) -> int:
    """How often the process had to let others run."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("nonvoluntary_ctxt_switches:")[2].split()[0])


def stolen_s() -> float:
    """How long the processors were taken away from this machine, if it is a virtual one, seconds."""
    return int(Path("/proc/stat").read_text().split()[8]) / TICKS_PER_S


def run_before_others(pid: int) -> bool:
    """Give the process's main thread the highest priority below real-time; returns whether we may.

    At real-time priority Linux stops a busy thread for 50 ms of each second (sched_rt_runtime_us).
    """
    try:
        os.setpriority(os.PRIO_PROCESS, pid, -20)
    except PermissionError:
        return False
    return True


def _tcp_rows(port: int) -> Iterator[list[str]]:
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:]:
            row = line.split()
            if int(row[1].rpartition(":")[2], 16) == port:
                yield row


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _open_files(pid: int) -> set[str]:
    found = set()
    # processes end while we look, and others' are not readable
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(str(entry.readlink()))
    return found
