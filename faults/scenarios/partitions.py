"""Rows 31 and 32: the network between masters, replicas, Sentinels and servers breaks, or a replica lags or hangs."""

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from faults.bed import DATABASE, Bed, Figures, assert_fsck_finds_nothing, labelled, restart
from faults.load import Load, Shape
from faults.network import BOTH, DIRECTIONS, Network
from faults.scenarios.failovers import BUCKETS, Replicated, is_whole, role_of
from tests.clusters import WatchedStore
from tests.processes import Host, Process, QueueServer
from tests.waiting import until

# breaks something until all is healed; the argument is one of DIRECTIONS
Break = Callable[[str], None]

# longer than a call to the store may take; and jobs that fall due while there are two masters
SHAPE: Final = Shape(ttr_s=8, longest_delay_s=15)
HEALS_S: Final = 150.0  # a kernel sends lost packets again after up to 120 s (TCP_RTO_MAX)
OPEN: Final = ("--protected-mode", "no")
WAYS: Final[dict[str, dict[str, object]]] = {
    "store": {"durability": "store"},
    "fsync": {"durability": "fsync"},
    "replica": {"durability": "replica"},
    "replica, pop too": {"durability": "replica", "redis.replicate": "all"},
    "replica+fsync": {"durability": "replica+fsync"},
}
# not promised: while there are two masters, pops that do not wait may get a job from each of them
COUNTED: Final = {
    "store": ("lost", "after_end", "unexplained"),
    "fsync": ("lost", "after_end", "unexplained"),
    "replica": ("unexplained",),
    "replica+fsync": ("unexplained",),
}
LEAST_CUT_S: Final = 0.5
# if it lasts until another master is elected, there are two
SPLITS: Final = "a server from all others"
TAKES_OVER_S: Final = 5.0
LAGGING_KBIT_S: Final = 32  # a fraction of what the load writes


async def partitions(
    bed: Bed, *, kind: type[Replicated], ways: Sequence[str], longest_s: float
) -> Figures:
    figures: Figures = {}
    for way in ways:
        with Network.opened() as network:
            hosts = iter(network)
            store = kind(bed.processes, *_options(way), hosts=hosts)
            settings = store.settings(DATABASE) | _asked(way)
            settings["bucket_size"] = 1 if isinstance(store, WatchedStore) else BUCKETS
            site = _Site(bed, network, store.nodes, _servers(bed, settings, hosts), settings)
            figures |= await site.broken(way, partial(_breaks, site, store), longest_s)
            store.close()
    return figures


def _options(way: str) -> tuple[str, ...]:
    return (*OPEN, "--appendfsync", "always" if "fsync" in way else "everysec")


def _asked(way: str) -> dict[str, object]:
    return WAYS[way] | {"redis.connect_timeout": 1000, "protected_mode": "no"}


def _servers(bed: Bed, settings: dict[str, object], hosts: Iterator[Host]) -> list[QueueServer]:
    """Two servers that are not started yet, each on its own host."""
    return [
        bed.processes.adopt(
            QueueServer("server", bed.processes.home("server"), settings, host=next(hosts))
        )
        for _ in range(2)
    ]


@dataclass
class _Site:
    """A store and two servers, each on its own host, under load."""

    bed: Bed
    network: Network
    nodes: Sequence[Process]
    servers: Sequence[QueueServer]
    settings: dict[str, object]

    def masters(self) -> list[Process]:
        return [node for node in self.nodes if role_of(node)[0] == "master"]

    def replicas_of(self, master: Process) -> list[Process]:
        return [node for node in self.nodes if role_of(node)[1:3] == [master.host, master.port]]

    async def broken(
        self, label: str, breaks: Callable[[], dict[str, Break]], longest_s: float
    ) -> Figures:
        """Break each of these once, in random order and for random times."""
        bed, healed_s = self.bed, []
        self._masters = len(self.masters())
        for server in self.servers:
            await restart(server)
        names = list(breaks())
        bed.random.shuffle(names)
        async with bed.load(*self.servers, shape=SHAPE) as load:
            for name in names:
                await load.until_finished(100)
                splits = SPLITS in name
                direction = BOTH if splits else bed.random.choice(DIRECTIONS)
                least_s = TAKES_OVER_S if splits else LEAST_CUT_S
                lasts_s = math.exp(bed.random.uniform(math.log(least_s), math.log(longest_s)))
                load.history.fault(f"{name}, {direction}, {lasts_s:.1f} s")
                breaks()[name](direction)
                await asyncio.sleep(lasts_s)
                self._heal()
                load.history.fault("healed")
                healed_s.append(await self._healed(load))
            verdict = await load.finish()
        for server in self.servers:
            server.stop()
        verdict.check(but=COUNTED.get(label, ()))
        assert_fsck_finds_nothing(self.settings)  # in this thread: others may be in another network
        figures = verdict.figures() | {
            "after their end": len(verdict.after_end),
            "faults": len(names),
            "longest until traffic flows again s": max(healed_s),
        }
        return labelled({label: figures})

    def cut(self, ones: Sequence[Process], others: Sequence[Process]) -> Break:
        """Nothing passes between these."""
        return partial(self.network.cut, _hosts(ones), _hosts(others))

    def lag(self, replica: Process) -> Break:
        """Packets to the replica are late."""
        return lambda _: self.network.slow(replica.host, LAGGING_KBIT_S)

    def freeze(self, replica: Process) -> Break:
        """The replica hangs; its connections stay open."""
        return lambda _: replica.freeze()

    def _heal(self) -> None:
        self.network.heal()
        for node in self.nodes:
            node.thaw()

    async def _healed(self, load: Load) -> float:
        """How long it takes until there is one master again, all follow it, and no request fails."""
        loop = asyncio.get_running_loop()
        since_s = loop.time()
        await until(lambda: is_whole(self.nodes, self._masters), within_s=HEALS_S)
        await load.until_none_fails(within_s=HEALS_S)
        return round(loop.time() - since_s, 2)


def _hosts(processes: Sequence[Process]) -> list[str]:
    return [process.host for process in processes]


def _breaks(site: _Site, store: Replicated) -> dict[str, Break]:
    """What can break, by its name. Some faults leave two masters, each with a server."""
    master = site.bed.random.choice(site.masters())
    replicas = site.replicas_of(master)
    first, second = site.servers
    more = dict[str, Break]()
    if isinstance(store, WatchedStore):
        who, voters = "Sentinels", list[Process](store.sentinels)
        more["master, a Sentinel and a server from all others"] = site.cut(
            [master, voters[0], first], [*replicas, *voters[1:], second]
        )
        more["a server from Sentinels"] = site.cut([first], voters)
    else:
        who = "other shards"
        voters = [node for node in site.nodes if node is not master and node not in replicas]
    return more | {
        "a replica lags": site.lag(replicas[0]),
        "a replica hangs": site.freeze(replicas[0]),
        "master from replicas": site.cut([master], replicas),
        f"master from {who}": site.cut([master], voters),
        "master from a server": site.cut([master], [first]),
        "master and a server from all others": site.cut(
            [master, first], [*replicas, *voters, second]
        ),
        "master from all others": site.cut([master], [*replicas, *voters, first, second]),
        "a replica from all others": site.cut(replicas[:1], [master, *voters, first, second]),
    }
