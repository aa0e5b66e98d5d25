"""What a push must survive before it is answered, by the setting `durability`.

- `fsync`: it is on the store's disk. That takes servers that sync before they answer: `appendonly`, and `appendfsync
  always`. WAITAOF would be another way to know, but does not work: while appendfsync is everysec, Valkey and Redis
  before 8.0 answer it before they have synced (779 answers, 5 syncs, seen with strace on Valkey 9.1.2;
  redis/redis#13793), and Redis 8 answers it once a second.
- `replica`: it is on replicas, so it survives when one of these takes over. WAIT says that a number of replicas have
  what this connection wrote. It does not say that one of these is promoted when the master is lost: Sentinels and
  Clusters compare how far replicas are, but by what these reported seconds ago, and take another one if the furthest
  does not answer. Only if all replicas of a master must have a write does every possible successor have it: so
  `redis.min_replicas` should be their number (docs/faults.md).
- `replica+fsync`: both.

And what the setting `require_noeviction` asks for.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self
from weakref import WeakKeyDictionary

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.config.values import Address
from delayqueue.errors import Text
from delayqueue.store.connection import DEMOTED, NotReplicatedError, Wait
from delayqueue.store.health import STORE, Look, NotDurableError, require_noeviction
from delayqueue.store.scripts import REPLICATE, ScriptHead
from delayqueue.store.servers import Servers
from delayqueue.tasks import SingleFlight, at_most

log = logging.getLogger(__name__)

TRUST_S: Final = 5.0


class Requirement:
    """What a server must have before a call is begun.

    It is known to have it for `trust_s` after each answer: it may have failed over since, or have another config. inf =
    from the start on, until doubt().
    """

    def __init__(self, question: Callable[[Redis], Awaitable[None]], trust_s: float) -> None:
        """`question` asks a server; it raises RedisError if the server does not have it."""
        self._question = question
        self._trust_s = trust_s
        self._trusted_until: WeakKeyDictionary[Redis, float] = WeakKeyDictionary()
        self._questions = SingleFlight[None]()

    def is_met(self, redis: Redis) -> bool:
        """Whether the server is known to have it; False = ask require()."""
        at_first = math.inf if self._trust_s == math.inf else 0.0
        return self._trusted_until.get(redis, at_first) >= asyncio.get_running_loop().time()

    def doubt(self, redis: Redis) -> None:
        """The server may not have it any more."""
        self._trusted_until[redis] = 0.0

    async def require(self, redis: Redis) -> None:
        """Raises RedisError if the server does not have it."""
        if not self.is_met(redis):
            await self._questions.do(redis, partial(self._ask, redis))

    async def _ask(self, redis: Redis) -> None:
        until = asyncio.get_running_loop().time() + self._trust_s
        await self._question(redis)
        self._trusted_until[redis] = until


FSYNC: Final = "fsync"
NEEDED: Final = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}


def asks_for_sync(config: Config) -> bool:
    """Whether `durability` asks for the disk, alone or together with replicas."""
    return FSYNC in config.durability.split("+")


async def require_file(redis: Redis, name: Text = STORE) -> None:
    """Raises NotDurableError if the server with that name has no append-only file."""
    if (await redis.info("persistence")).get("aof_enabled") == 0:
        raise NotDurableError(
            Text(
                f"{name.zh}没有 AOF 文件：master 这样重新启动后是空的，并清空副本；请在其配置中设置 `appendonly yes`",
                f"{name.en} has no append-only file: a master that starts again without one is empty, and empties its "
                "replicas; set `appendonly yes` in its config",
            )
        )


async def require_sync(redis: Redis, name: Text = STORE) -> None:
    """Raises NotDurableError if the server with that name answers before it has synced."""
    try:
        # a pattern, because Redis before 7.0 takes only one
        found = await redis.config_get("*append*")
    except ResponseError:
        raise NotDurableError(
            Text(
                f"{name.zh}拒绝 CONFIG GET，无法知道它是否先同步再响应；请允许它，或者让 durability 不含 {FSYNC}",
                f"{name.en} refuses CONFIG GET, so it is unknown whether it syncs before it answers; allow it, "
                f"or set durability without {FSYNC}",
            )
        ) from None
    wrong = [f"{key} {value}" for key, value in NEEDED.items() if found.get(key) != value]
    if wrong:
        needed = ", ".join(wrong)
        raise NotDurableError(
            Text(
                f"{name.zh}在任务写到磁盘之前就响应；请在其配置中设置 `{needed}`",
                f"{name.en} answers before a job is on its disk; set `{needed}` in its config",
            )
        )


class SyncedFile:
    """Whether servers sync what they answer, to a file that they read when they start again.

    A file that was switched on while the server ran (`CONFIG SET appendonly yes`, or a replica's after its first
    synchronization) is read from the end of its first rewrite on: a server that is killed before that knows nothing of
    it. INFO says the same in the first rewrite of a file that was there from the start on, so only a process that has
    not been asked before has to wait. It tells no other rewrites apart (docs/durability.md).
    """

    def __init__(self) -> None:
        # the run_id of the process whose file counts: another process can answer at the same address later
        self._whole: WeakKeyDictionary[Redis, str] = WeakKeyDictionary()

    async def require(self, redis: Redis) -> None:
        """Raises NotDurableError if this server answers before that."""
        try:
            await require_sync(redis)
        except NotDurableError:
            self._whole.pop(redis, None)
            raise
        info: dict[str, Any] = await redis.info()
        process = str(info.get("run_id"))
        if self._whole.get(redis) == process:
            return
        if info.get("aof_rewrite_in_progress") and info.get("aof_base_size") == 0:
            raise NotDurableError(
                Text(
                    f"{STORE.zh}正在写 AOF 文件，写完之前重新启动会丢失任务",
                    f"{STORE.en} is still writing its append-only file: until that has ended, it loses jobs if it "
                    "starts again",
                )
            )
        self._whole[redis] = process


LOOK_S: Final = 5.0  # replicas come and go
LAG_S: Final = 2  # replicas report every second; one silent for longer counts as unavailable
REPLICA: Final = "replica"


class TooFewReplicasError(NotReplicatedError):
    """A call was not begun, because its replicas are known to be unavailable."""


class Replicas:
    """Which calls wait for replicas, and whether a job that they have survives a failover."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._wait = Wait(config.redis_min_replicas, config.redis_replica_timeout_ms)
        self._waiting = REPLICATE[: REPLICATE.index(config.redis_replicate) + 1]
        # too few may follow a master whose replicas have kept a call waiting: then there is no need to begin
        self.requirement: Final = Requirement(self._check, math.inf)
        self.warnings: list[Text] = []  # why such a job could be lost right now

    def wait(self, verb: ScriptHead) -> Wait | None:
        """What a call of the verb waits for."""
        return self._wait if verb.waits in self._waiting else None

    def missed(self, redis: Redis) -> None:
        """Too few replicas had this server's write."""
        if self.requirement.is_met(redis):
            log.warning("too few replicas answer: pushes get 503 until they follow again")
        self.requirement.doubt(redis)

    async def _check(self, redis: Redis) -> None:
        following = len(_following(await redis.info("replication")))
        if following < self._wait.replicas:
            raise TooFewReplicasError(f"{following} of {self._wait.replicas} replicas follow")

    async def watch(self, servers: Servers) -> None:
        """Update `warnings`, and log changes, until cancelled: at the start, every 5 s and after a failover."""
        while True:
            changed = servers.changed
            found = await replica_warnings(servers, self._config)
            for warning in found:
                if warning not in self.warnings:
                    log.warning("%s", warning.en)
            if self.warnings and not found:
                log.info("acknowledged jobs survive a failover again")
            self.warnings = found
            async with at_most(LOOK_S):
                await changed.wait()


def asks_for_replicas(config: Config) -> bool:
    """Whether `durability` asks for replicas, alone or together with the disk."""
    return REPLICA in config.durability.split("+")


async def replica_warnings(servers: Servers, config: Config) -> list[Text]:
    """Why a job that `redis.min_replicas` replicas have could be lost in a failover; empty if it could not.

    Empty, too, if `durability` does not ask for replicas.
    """
    clients = servers.clients() if asks_for_replicas(config) else {}
    warnings: list[Text] = []
    for address, redis in clients.items():
        name = f"{address}: " if len(clients) > 1 else ""
        try:
            found = await _warnings_of(servers, redis, config)
        except RedisError as error:
            found = [
                Text(
                    f"无法知道存储有哪些副本：{error}",
                    f"it is unknown which replicas the store has: {error}",
                )
            ]
        warnings += [Text(name + warning.zh, name + warning.en) for warning in found]
    return warnings


async def _warnings_of(servers: Servers, master: Redis, config: Config) -> list[Text]:
    info: dict[str, Any] = await master.info("replication")
    known = await servers.replicas_of(master)
    following = _following(info)
    number = max(info.get("connected_slaves", 0), known or 0)
    syncs = asks_for_sync(config)
    # each replica may be the next master
    restarts = await asyncio.gather(
        _restart_warning(master, STORE, syncs),
        *(
            _replica_restart_warning(servers, Address(each["ip"], each["port"]), syncs)
            for each in following
        ),
    )
    return _count_warnings(len(following), number, config.redis_min_replicas) + list(
        filter(None, restarts)
    )


def _count_warnings(following: int, number: int, least: int) -> list[Text]:
    """What is wrong with how many replicas follow a master, and how many it has in all."""
    found = {
        Text(
            f"有 {following} 个副本跟随存储，推送要等 {least} 个（redis.min_replicas）：在那之前，推送得到 503",
            f"{following} replicas follow the store, and pushes wait for {least} (redis.min_replicas): "
            "they get 503 until more do",
        ): following < least,
        Text(
            f"存储有 {number} 个副本，推送只等其中 {least} 个：缺少最后一些推送的副本也可能接管；"
            f"请设置 redis.min_replicas = {number}，或者移除不会再回来的副本（SENTINEL RESET、CLUSTER FORGET）",
            f"the store has {number} replicas, and pushes wait for {least} of them: one without the last "
            f"pushes can take over; set redis.min_replicas = {number}, or remove replicas that are gone for good "
            "(SENTINEL RESET, CLUSTER FORGET)",
        ): number > least,
    }
    return [warning for warning, applies in found.items() if applies]


async def _replica_restart_warning(servers: Servers, address: Address, syncs: bool) -> Text | None:
    name = Text(f"副本 {address} ", f"the replica {address}")
    try:
        async with servers.ask(address) as redis:
            return await _restart_warning(redis, name, syncs)
    except RedisError as error:
        return Text(
            f"无法询问{name.zh}保存得是否可靠，它接管之后也无法使用：{error}",
            f"{name.en} cannot be asked how durable it is, nor be used once it takes over: {error}",
        )


async def _restart_warning(redis: Redis, name: Text, syncs: bool) -> Text | None:
    """Why the server with that name could restart with less than it had; None if it could not."""
    try:
        await require_file(redis, name)
        if syncs:
            await require_sync(redis, name)
    except NotDurableError as error:
        return error.text
    return None


def _following(info: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The replicas that have all data and reported recently, according to a master."""
    return [
        replica
        for name, replica in info.items()
        if name.startswith("slave")
        and isinstance(replica, dict)
        and (replica.get("state") == "online" and replica.get("lag", 0) <= LAG_S)
    ]


@dataclass(frozen=True)
class Durability:
    """What calls need so that their changes are as durable as configured when they are answered."""

    fsync: Requirement | None = None
    replicas: Replicas | None = None
    noeviction: Requirement | None = None

    @classmethod
    def of(cls, config: Config) -> Self:
        """The durability that the settings ask for."""
        return cls(
            Requirement(SyncedFile().require, TRUST_S) if asks_for_sync(config) else None,
            Replicas(config) if asks_for_replicas(config) else None,
            Requirement(require_noeviction, TRUST_S) if config.require_noeviction else None,
        )

    def wait(self, verb: ScriptHead) -> Wait | None:
        """What a call of the verb waits for."""
        return self.replicas.wait(verb) if self.replicas else None

    def requirements(self, verb: ScriptHead) -> list[Requirement]:
        """What a server must have before a call of the verb is begun."""
        needed: list[Requirement] = []
        if "sync" in verb.needs:
            needed += filter(None, (self.fsync, self.noeviction))
        if self.replicas and "replicas" in verb.needs and self.wait(verb):
            needed.append(self.replicas.requirement)
        return needed

    def lets_in(self, look: Look) -> bool:
        """Whether the server that was looked at takes new jobs from us."""
        return look.ailment is None and not (self.noeviction and look.evicts)

    def learn(self, error: RedisError, redis: Redis) -> None:
        """Learn from the error of a call."""
        if self.replicas and isinstance(error, NotReplicatedError):
            self.replicas.missed(redis)
        if isinstance(error, (RedisConnectionError, *DEMOTED)):  # another server may answer next
            for trusted in filter(None, (self.fsync, self.noeviction)):
                trusted.doubt(redis)


async def check_durability(servers: Servers, config: Config) -> None:
    """Raises StartupError if the store cannot give what `durability` asks for."""
    replicated = asks_for_replicas(config)
    if replicated and config.embedded:
        raise StartupError(
            f"durability = {config.durability}: the embedded store has no replicas; "
            "set durability = fsync, or use a store with replicas",
            key="durability",
        )
    for redis in servers.clients().values():
        try:
            if asks_for_sync(config):
                await require_sync(redis)
            if replicated:
                await require_file(redis)
        except NotDurableError as error:
            raise StartupError(
                f"durability = {config.durability}: {error}", key="durability"
            ) from None
        except RedisError:  # one of many, unavailable now: it is checked before its first push
            continue
