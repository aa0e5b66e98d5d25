"""Separate hosts for processes, and faults between them: network namespaces on one bridge.

Packets to another host vanish if their sender has a hardware address for it that no host has. Neither side is
told, as if a cable were pulled; and each direction can be broken by itself.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from faults.bed import CannotRun
from tests.processes import Host
from tests.waiting import wait_until

CLONE_NEWNET: Final = 0x40000000
NETWORK: Final = "10.77.0"
NOBODY: Final = "02:00:00:00:ff:ff"
QUEUE_S: Final = 60  # packets that would wait for longer on a slow link are dropped
BOTH: Final = "both"
FROM: Final = "from"  # packets from the first hosts
TO: Final = "to"  # packets to them
DIRECTIONS: Final = (BOTH, FROM, TO)


class Network:
    """Hosts that reach each other, made on demand. The test itself always reaches all of them."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._pids: list[int] = []  # of the process that holds a host's namespace open
        self._slow: list[int] = []  # hosts, by their numbers

    @classmethod
    @contextmanager
    def opened(cls) -> "Iterator[Network]":
        """Move the thread into the network while the block runs. Raises CannotRun if it may not make one."""
        with ExitStack() as stack:
            home = stack.enter_context(Path("/proc/thread-self/ns/net").open("rb"))
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.unshare(CLONE_NEWNET):
                raise CannotRun(f"network namespaces: {os.strerror(ctypes.get_errno())}")
            stack.callback(libc.setns, home.fileno(), CLONE_NEWNET)
            _ip("link set lo up", "link add hub type bridge", f"addr add {NETWORK}.1/24 dev hub")
            _ip("link set hub up")
            yield cls(stack)

    def __iter__(self) -> Iterator[Host]:
        """As many new hosts as are wanted."""
        while True:
            yield self._new_host()

    def cut(self, ones: Iterable[str], others: Iterable[str], direction: str = BOTH) -> None:
        """Stop all packets between these addresses, or only those `from` or `to` the first ones."""
        for one in ones:
            for other in others:
                if direction in {BOTH, FROM}:
                    self._send(one, other, NOBODY)
                if direction in {BOTH, TO}:
                    self._send(other, one, NOBODY)

    def slow(self, host: str, kbit_s: int) -> None:
        """Limit packets to this address to this rate."""
        number = _number(host)
        _run(
            f"tc qdisc add dev host{number} root tbf rate {kbit_s}kbit burst 2kb latency {QUEUE_S}s"
        )
        self._slow.append(number)

    def heal(self) -> None:
        """Let all hosts reach each other at full speed."""
        for number in self._slow:
            _run(f"tc qdisc del dev host{number} root")
        self._slow.clear()
        for one in range(len(self._pids)):
            for other in range(len(self._pids)):
                if one != other:
                    self._send(_address(one), _address(other), _hardware(other))

    def _new_host(self) -> Host:
        number = len(self._pids)
        holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"]
        )
        self._stack.callback(holder.wait)
        self._stack.callback(holder.kill)
        self._pids.append(holder.pid)
        _until_apart(holder.pid)
        _ip(
            f"link add host{number} type veth peer name eth0 address {_hardware(number)} netns {holder.pid}",
            f"link set host{number} master hub up",
        )
        _ip("link set lo up", f"addr add {_address(number)}/24 dev eth0", pid=holder.pid)
        _ip("link set eth0 up", pid=holder.pid)
        self.heal()
        return Host(_address(number), _inside(holder.pid))

    def _send(self, one: str, other: str, hardware: str) -> None:
        pid = self._pids[_number(one)]
        _ip(f"neigh replace {other} lladdr {hardware} dev eth0 nud permanent", pid=pid)


def _address(number: int) -> str:
    return f"{NETWORK}.{number + 2}"


def _number(address: str) -> int:
    return int(address.rpartition(".")[2]) - 2


def _hardware(number: int) -> str:
    return f"02:00:00:00:00:{number + 2:02x}"


def _inside(pid: int) -> tuple[str, ...]:
    return ("nsenter", f"--net=/proc/{pid}/ns/net")


def _ip(*commands: str, pid: int | None = None) -> None:
    for command in commands:
        _run(f"ip {command}", *(_inside(pid) if pid else ()))


def _run(command: str, *wrapper: str) -> None:
    subprocess.run([*wrapper, *command.split()], check=True)


def _until_apart(pid: int) -> None:
    """Wait until the process has its own namespace."""
    here = Path("/proc/thread-self/ns/net").readlink()
    wait_until(lambda: Path(f"/proc/{pid}/ns/net").readlink() != here)
