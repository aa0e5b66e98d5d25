"""Stores of several servers for the tests: a Redis Cluster, and a master watched by Sentinels."""

import itertools
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from redis import Redis
from redis.crc import key_slot

from tests.processes import (
    HERE,
    Host,
    Process,
    Processes,
    StoreServer,
    answers_ping,
    free_port,
    redis_binary,
)
from tests.waiting import wait_until

SLOTS: Final = 16384
SHARDS: Final = 3
MASTER_NAME: Final = "delays"
NODE_TIMEOUT_MS: Final = 1000
# for a store that must lose no node: a busy machine may not answer for a second
UNHURRIED_MS: Final = 5000
UNHURRIED: Final = ("--cluster-node-timeout", str(UNHURRIED_MS))
USUAL_BUS: Final = 10_000  # how much higher than a node's port
# a replica counts once it has replicated something, even just a ping
SAFE: Final = (
    *("--appendonly", "yes", "--repl-diskless-sync-delay", "0"),
    *("--repl-ping-replica-period", "1"),
)

HERES: Final = itertools.repeat(HERE)


class ClusterNode(StoreServer):
    """A server of a Cluster."""

    def __init__(
        self, home: Path, *options: str, host: Host = HERE, binary: str | None = None
    ) -> None:
        self.node_id = secrets.token_hex(20)
        binary = binary or redis_binary()
        # without a shard's id, Valkey 9.1 ends itself at the first SPUBLISH; Redis 7.0 knows none
        self.tells_shard = "valkey" in Path(binary).name
        super().__init__(
            "node",
            home,
            binary,
            *("--cluster-enabled", "yes"),
            *("--cluster-node-timeout", str(NODE_TIMEOUT_MS)),
            *("--cluster-require-full-coverage", "no"),
            *("--cluster-replica-validity-factor", "0"),  # on a busy machine links break
            *SAFE,
            *options,
            host=host,
        )
        # the usual one, free on a host of its own; before Redis 7.0 there is no other
        self.bus_port = self.port + USUAL_BUS
        if host is HERE:
            self.bus_port = free_port()
            self._command += ["--cluster-port", str(self.bus_port)]


class StoreCluster:
    """Masters with an equal part of the slots each, first in `nodes`, and a replica of each."""

    def __init__(
        self,
        processes: Processes,
        *options: str,
        shards: int = SHARDS,
        replicas: int = 1,
        hosts: Iterator[Host] = HERES,
        binary: str | None = None,
    ) -> None:
        """They run `binary`, None = redis-server."""
        self.shards = shards
        self._rows = 1 + replicas
        options = (*processes.redis_options, *options)
        self.nodes = [
            processes.adopt(
                ClusterNode(processes.home("node"), *options, host=next(hosts), binary=binary)
            )
            for _ in range(self._rows * shards)
        ]
        for node in self.nodes:
            # as if they had met before: CLUSTER MEET and REPLICATE take 10 s to spread
            node.home.joinpath("nodes.conf").write_text(self._nodes_as(node), encoding="ascii")
            node.launch()
        for node in self.nodes:
            wait_until(node.is_ready)
        for node in self.nodes:
            wait_until(lambda node=node: self._is_whole(node))  # type: ignore[misc]
        self._places = 0

    def new_database(self) -> int:
        """The number of an unused place: a Cluster has one database, but room for any names."""
        self._places += 1
        return self._places

    def settings(self, database: object) -> dict[str, object]:
        addresses = ", ".join(node.address for node in self.nodes[: self.shards])
        return {"redis.cluster": addresses, "bucket_name": f"place_{database}_bucket_%d"}

    def _nodes_as(self, myself: ClusterNode) -> str:
        lines = []
        for number, node in enumerate(self.nodes):
            shard = number % self.shards
            first, last = (SLOTS * (shard + part) // self.shards - part for part in (0, 1))
            master = number == shard
            flags = ("myself," if node is myself else "") + ("master" if master else "slave")
            follows = "-" if master else self.nodes[shard].node_id
            aux = f",,shard-id={self.nodes[shard].node_id}" if myself.tells_shard else ""
            place = f"{node.node_id} {node.address}@{node.bus_port}{aux} {flags} {follows}"
            slots = f" {first}-{last}" if master else ""
            lines.append(f"{place} 0 0 {shard + 1} connected{slots}\n")
        return "".join(lines) + f"vars currentEpoch {self.shards} lastVoteEpoch 0\n"

    def _is_whole(self, node: ClusterNode) -> bool:
        """Whether the node knows all masters with their replicas, and a replica has its master's data."""
        shards = ask(node, "CLUSTER", "SLOTS")
        served = "cluster_state:ok" in ask(node, "CLUSTER", "INFO")
        replicated = "master_link_status:down" not in ask(node, "INFO", "replication")
        return (
            served
            and replicated
            and [len(shard) - 2 for shard in shards] == [self._rows] * self.shards
        )

    def holder(self, key: str) -> ClusterNode:
        """The master that holds the key, according to a server that answers."""
        slot = key_slot(key.encode())
        for node in self.nodes:
            if node.exit_status() is None:
                for first, last, (_, port, *_), *_ in ask(node, "CLUSTER", "SLOTS"):
                    if first <= slot <= last:
                        return next(node for node in self.nodes if node.port == port)
        raise AssertionError(f"nobody holds {key}")

    def close(self) -> None:
        for node in self.nodes:
            node.close()


class SentinelServer(Process):
    """A Sentinel, which watches a master."""

    def __init__(
        self, home: Path, master: StoreServer, *, down_after_ms: int, host: Host = HERE
    ) -> None:
        port = free_port()
        config = home / "sentinel.conf"
        config.write_text(
            f"port {port}\nbind {host.address}\ndir {home}\nprotected-mode no\n"
            f"sentinel monitor {MASTER_NAME} {master.host} {master.port} 2\n"
            f"sentinel down-after-milliseconds {MASTER_NAME} {down_after_ms}\n"
            f"sentinel failover-timeout {MASTER_NAME} 3000\n",
            encoding="ascii",
        )
        command = [redis_binary(), str(config), "--sentinel"]
        super().__init__("sentinel", home, command, port=port, host=host)

    def is_ready(self) -> bool:
        return answers_ping(self)


class WatchedStore:
    """A master with replicas, by default one, and three Sentinels."""

    def __init__(
        self,
        processes: Processes,
        *options: str,
        down_after_ms: int = 1000,
        replicas: int = 1,
        hosts: Iterator[Host] = HERES,
    ) -> None:
        self.master = processes.redis(*SAFE, *options, host=next(hosts))
        follow = ("--replicaof", self.master.host, str(self.master.port))
        self.replicas = [
            processes.redis(*SAFE, *options, *follow, host=next(hosts)) for _ in range(replicas)
        ]
        self.sentinels = [
            processes.started(
                SentinelServer(
                    processes.home("sentinel"),
                    self.master,
                    down_after_ms=down_after_ms,
                    host=next(hosts),
                )
            )
            for _ in range(3)
        ]
        for sentinel in self.sentinels:
            wait_until(lambda sentinel=sentinel: _is_complete(sentinel, replicas))  # type: ignore[misc]

    @property
    def nodes(self) -> list[StoreServer]:
        """The servers of the store; the first one was the master at the beginning."""
        return [self.master, *self.replicas]

    def new_database(self) -> int:
        return self.master.new_database()

    def settings(self, database: object) -> dict[str, object]:
        addresses = ", ".join(sentinel.address for sentinel in self.sentinels)
        named = {"redis.sentinel": addresses, "redis.master_name": MASTER_NAME}
        return named | {"redis.db": database}

    def close(self) -> None:
        for process in (*self.sentinels, *self.replicas, self.master):
            process.close()


def ask(process: Process, *words: object) -> Any:
    """A server's answer, with text instead of bytes."""
    with Redis(process.host, process.port, protocol=2, decode_responses=True) as redis:
        connection = redis.connection_pool.get_connection()
        try:
            connection.send_command(*words)
            return connection.read_response()
        finally:
            redis.connection_pool.release(connection)


def _is_complete(sentinel: SentinelServer, replicas: int) -> bool:
    """Whether it knows the replicas and the other two."""
    raw = ask(sentinel, "SENTINEL", "MASTER", MASTER_NAME)
    facts = dict(zip(raw[::2], raw[1::2], strict=True))
    return (facts["num-slaves"], facts["num-other-sentinels"]) == (str(replicas), "2")
