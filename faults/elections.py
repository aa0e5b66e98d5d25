"""Tries which replica is elected when its master is lost, and whether it has what WAIT had confirmed.

`python -m faults.elections` tries the redis-server that is first on PATH: a master with the replicas A and B; B
does not get the last write, `WAIT 1` is answered as A has it, and then the master is killed.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from redis import Redis
from redis.crc import key_slot

from faults.network import BOTH, FROM, Network
from faults.scenarios.failovers import is_whole, role_of
from tests.clusters import SLOTS, StoreCluster, WatchedStore, ask
from tests.processes import Process, Processes

WAIT_MS: Final = 1000
FORMS_S: Final = 30.0
ELECTED_S: Final = 20.0
SILENCE_S: Final = 6  # more than once the node timeout, and less than ten times
A_WINS: Final = "A"
B_WINS: Final = "B: lost"
NOBODY: Final = "nobody"
# of a slot of the first master, also in a Cluster of three
TAG: Final = next(tag for tag in map(str, range(SLOTS)) if key_slot(tag.encode()) < SLOTS // 4)
LAST: Final = f"{{{TAG}}}:last"


@dataclass
class _Site:
    """A master, its replicas, and the servers that vote for one of these."""

    network: Network
    master: Process
    replicas: Sequence[Process]
    electors: Sequence[Process]

    @property
    def a(self) -> Process:
        return self.replicas[0]

    @property
    def b(self) -> Process:
        return self.replicas[1]

    def cut(self, ones: Sequence[Process], others: Sequence[Process], way: str = BOTH) -> None:
        self.network.cut([each.host for each in ones], [each.host for each in others], way)


Prepare = Callable[[_Site], object]


def _without_a(site: _Site) -> None:
    site.cut([site.a], site.electors)


def _refusing(site: _Site) -> None:
    """The master refuses writes once a replica has said nothing for 2 s."""
    ask(site.master, "CONFIG", "SET", "min-replicas-to-write", 2)
    ask(site.master, "CONFIG", "SET", "min-replicas-max-lag", 2)
    _without_a(site)


def _after_silence(validity_factor: int) -> Prepare:
    def prepare(site: _Site) -> None:
        _without_a(site)
        for replica in site.replicas:
            ask(replica, "CONFIG", "SET", "cluster-replica-validity-factor", validity_factor)
        time.sleep(SILENCE_S)

    return prepare


SILENT: Final = f"the same, and B has heard nothing for {SILENCE_S} s, "
# by the kind of store: what else is broken, and its description
CASES: Final[dict[type[WatchedStore | StoreCluster], dict[str, Prepare]]] = {
    WatchedStore: {
        "Sentinel, all else is well": lambda _: None,
        "Sentinel, B has the lower `replica-priority`": lambda site: ask(
            site.b, "CONFIG", "SET", "replica-priority", 10
        ),
        "Sentinel, the Sentinels do not reach A": _without_a,
        "the same with `min-replicas-to-write 2`, `min-replicas-max-lag 2`": _refusing,
    },
    StoreCluster: {
        "Cluster, all else is well": lambda _: None,
        "Cluster, A does not reach the other masters": _without_a,
        SILENT + "`cluster-replica-validity-factor 10`": _after_silence(10),
        SILENT + "`cluster-replica-validity-factor 1`": _after_silence(1),
        "Cluster, A's messages do not reach B": lambda site: site.cut([site.a], [site.b], FROM),
    },
}


def main() -> int:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(prog="python -m faults.elections", description=__doc__)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name has it")
    asked = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="elections-"))
    for version, name, found in elections(home, times=asked.times, only=asked.only):
        outcomes = ", ".join(f"{each}, {number} of {asked.times}" for each, number in found.items())
        sys.stdout.write(f"{version} | {name} | {outcomes}\n")
        sys.stdout.flush()
    return 0


def elections(home: Path, *, times: int, only: str = "") -> Iterator[tuple[str, str, Counter[str]]]:
    """The version, the name of a case, and how often A, B or nobody was elected in it."""
    for kind, cases in CASES.items():
        for name, prepare in cases.items():
            if only in name:
                tried = [_try(home, kind, prepare) for _ in range(times)]
                yield tried[0][0], name, Counter(outcome for _, outcome in tried)


def _try(home: Path, kind: type[WatchedStore | StoreCluster], prepare: Prepare) -> tuple[str, str]:
    """The version, and who was elected."""
    processes = Processes(Path(tempfile.mkdtemp(dir=home)))
    try:
        with Network.opened() as network:
            store = kind(processes, "--protected-mode", "no", replicas=2, hosts=iter(network))
            site = _site(network, store)
            _until(lambda: is_whole(store.nodes, len(store.nodes) // 3), FORMS_S)
            version = _version(site.master)
            _write(site.master, f"{{{TAG}}}:before", 2)
            site.cut([site.b], [site.master])
            prepare(site)
            _write(site.master, LAST, 1)
            site.master.kill()
            return version, _elected(site)
    finally:
        processes.close()


def _site(network: Network, store: WatchedStore | StoreCluster) -> _Site:
    if isinstance(store, WatchedStore):
        return _Site(network, store.master, store.replicas, store.sentinels)
    master, *others = store.nodes[: store.shards]
    replicas = [node for node in store.nodes if role_of(node)[1:3] == [master.host, master.port]]
    return _Site(network, master, replicas, others)


def _write(master: Process, key: str, replicas: int) -> None:
    """Write a key, and prove that this many replicas have it, no more, no less."""
    with Redis(master.host, master.port, single_connection_client=True) as redis:
        redis.set(key, "value")
        assert redis.wait(2, WAIT_MS) == replicas


def _elected(site: _Site) -> str:
    deadline = time.monotonic() + ELECTED_S
    while time.monotonic() < deadline:
        for replica in site.replicas:
            if role_of(replica)[0] == "master":
                has_it = ask(replica, "EXISTS", LAST) == 1
                assert has_it == (replica is site.a)
                return A_WINS if has_it else B_WINS
        time.sleep(0.1)
    return NOBODY


def _version(server: Process) -> str:
    facts = dict(
        line.split(":", 1) for line in ask(server, "INFO", "server").splitlines() if ":" in line
    )
    kind = "Valkey" if "valkey_version" in facts else "Redis"
    return f"{kind} {facts[f'{kind.lower()}_version']}"


def _until(condition: Callable[[], bool], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
