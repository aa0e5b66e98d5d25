"""Starts Python programs as forks of a process that has imported ours: importing takes most of a server's start.

A program runs as with `python -m`: as `__main__`, with its own arguments, environment, directory and log. It is a
child of the process that asked for it, and is killed when that one ends.
"""

import ctypes
import gc
import importlib
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

IMPORTED: Final = ("delayqueue.cli", "delayqueue.server.serve", "uvloop")
POLL_S: Final = 0.0005

PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
libc: Final = ctypes.CDLL(None, use_errno=True)


class Program(NamedTuple):
    """A module, its arguments, and what it runs in."""

    module: str
    arguments: list[str]
    directory: Path
    environment: Mapping[str, str]
    out: Path  # files that get its output
    err: Path
    parent: int  # the process that it is a child of


class Forked:
    """A program that runs or has ended: the part of subprocess.Popen that is used here."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        """The exit status, or None while it runs."""
        if self._status is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """The exit status when it has ended. Raises subprocess.TimeoutExpired."""
        if self.poll() is None:
            ended = os.pidfd_open(self.pid)
            # select() takes no number above 1023, and tests open thousands of connections
            poll = select.poll()
            poll.register(ended, select.POLLIN)
            poll.poll(None if timeout is None else timeout * 1000)
            os.close(ended)
        status = self.poll()
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


class ForkServer:
    """The process that forks. It ends with the process that started it."""

    def __init__(self) -> None:
        _control(PR_SET_CHILD_SUBREAPER, 1)  # a fork whose parent has ended becomes our child
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours.detach())
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def launch(
        self,
        module: str,
        arguments: list[str],
        directory: Path,
        environment: Mapping[str, str],
        out: Path,
        err: Path,
    ) -> Forked:
        """Run a module; its output is appended to these files."""
        program = Program(module, arguments, directory, environment, out, err, os.getpid())
        self._connection.send(program)
        pid = self._connection.recv()
        self._connection.recv()  # the process between has ended
        return Forked(pid)


def _control(option: int, value: int) -> None:
    """Raises OSError."""
    if libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def _next(connection: Connection) -> Program | None:
    """Fork for each requested program. Returns in a fork its program; None when no more requests can come."""
    while True:
        try:
            program: Program = connection.recv()
        except EOFError:
            return None
        between = os.fork()
        if not between:
            forked = os.fork()
            if not forked:
                return program
            connection.send(forked)
            os._exit(0)
        os.waitpid(between, 0)
        connection.send(None)


def _become(program: Program) -> None:
    """Set this process up as the program expects."""
    while os.getppid() != program.parent:
        time.sleep(POLL_S)
    _control(PR_SET_PDEATHSIG, signal.SIGKILL)
    for number, path in ((1, program.out), (2, program.err)):
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.dup2(file, number)
        os.close(file)
    os.chdir(program.directory)
    os.environ.clear()
    os.environ.update(program.environment)
    found = program.environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [path for path in found if path and path not in sys.path]
    sys.argv = [program.module, *program.arguments]


def _run(connection: Connection) -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # else each fork's collector writes to all pages of what was imported, so they are copied
    program = _next(connection)
    if program is not None:
        connection.close()
        _become(program)
        runpy.run_module(program.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _run(Connection(int(sys.argv[1])))
