"""What can be wrong with the store: what its errors say, what it says of itself, and its figures.

A store that drops jobs when its memory is full (`maxmemory` with a policy that evicts keys without an expiry) takes a
whole key at an eviction, and a key can hold all jobs of a bucket. With `volatile-*` only keys with an expiry go:
figures of the history, and which worker holds which job.
"""

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.errors import Text, Unavailable
from delayqueue.store.connection import NotReplicatedError
from delayqueue.store.permissions import LackingError, require_commands
from delayqueue.store.servers import Servers
from delayqueue.store.types import Health

log = logging.getLogger(__name__)


class NotDurableError(RedisError):
    """A server answers before it has synced; the message says why and how to fix it."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text: Text = text


class EvictsError(RedisError):
    """A server drops jobs when its memory is full, and `require_noeviction` forbids that."""


def evicts(info: Mapping[str, Any]) -> bool:
    """Whether the server with this INFO drops jobs when its memory is full; True if it does not say."""
    policy = str(info.get("maxmemory_policy"))
    return (
        info.get("maxmemory") != 0 and policy != "noeviction" and not policy.startswith("volatile-")
    )


async def require_noeviction(redis: Redis) -> None:
    """Raises EvictsError if this server drops jobs when its memory is full."""
    info: dict[str, Any] = await redis.info("memory")
    if evicts(info):
        raise EvictsError(f"maxmemory-policy is {info.get('maxmemory_policy')}")


MOVING: Final = Text("Cluster 正在移动槽", "the Cluster is moving a slot")
UNKNOWN: Final = Text("拒绝调用，详见日志", "it refuses calls; the log says more")
# By the error's class; a class stands before the one that it is derived from.
AILMENTS_BY_CLASS: Final[dict[type[RedisError], Text]] = {
    AuthenticationError: Text(
        "拒绝我们登录：请更正 redis.user 和 redis.password，并重启服务",
        "it refuses our login: correct redis.user and redis.password, and restart the servers",
    ),
    BusyLoadingError: Text("正在加载数据", "it is loading its data"),
    ReadOnlyError: Text(
        "它是只读副本：请填写 master 或 Sentinel 的地址",
        "it is a read-only replica: name the master, or the Sentinels",
    ),
    MasterDownError: Text("与它的 master 断开了连接", "it has lost its master"),
    ClusterDownError: Text(
        "Cluster 中没有服务器负责所需的槽", "no server of the Cluster holds a slot that is needed"
    ),
    MovedError: Text(  # to a call that follows no topology
        "它是 Cluster 中的一台：请在 redis.cluster 中填写这些服务器",
        "it is a server of a Cluster: name its servers in redis.cluster",
    ),
    OutOfMemoryError: Text(
        "内存已满，不接受新任务：请在其配置中调大 `maxmemory`，或者结束一些任务",
        "its memory is full, so it takes no new jobs: raise `maxmemory` in its config, or end jobs",
    ),
    AskError: MOVING,
    TryAgainError: MOVING,
    NotReplicatedError: Text("跟随的副本太少", "too few replicas follow"),
    NotDurableError: Text("任务尚未落盘，它就已响应", "it answers before a job is on its disk"),
    EvictsError: Text(
        "内存满了会丢弃任务（require_noeviction）：请在其配置中设置 `maxmemory-policy noeviction`",
        "it drops jobs when its memory is full (require_noeviction): "
        "set `maxmemory-policy noeviction` in its config",
    ),
    RedisTimeoutError: Text("没有响应", "it does not answer"),
    RedisConnectionError: Text("无法连接", "it cannot be reached"),
}
# By the beginning of the message, of errors that redis-py has no class of their own for.
AILMENTS_BY_BEGINNING: Final = {
    "max number of clients": Text(
        "没有更多客户端连接的位置：请调大它配置中的 `maxclients`，或者断开其他客户端",
        "it has no room for more clients: raise `maxclients` in its config, or end others",
    ),
    "MISCONF": Text(
        "无法写入磁盘：请腾出空间，否则原因在它的日志里",
        "it cannot write to its disk: make room there, or see why in its log",
    ),
    "NOREPLICAS": AILMENTS_BY_CLASS[NotReplicatedError],
    "BUSY ": Text("正忙于执行脚本", "it is busy with a script"),
}


def ailment(error: BaseException | None) -> Text | None:
    """What ails the store, in words that tell a stranger no address; None if nothing is known of such an error."""
    if isinstance(error, LackingError):
        return error.text
    for beginning, text in AILMENTS_BY_BEGINNING.items():
        if str(error).startswith(beginning):
            return text
    return next((text for kind, text in AILMENTS_BY_CLASS.items() if isinstance(error, kind)), None)


@contextmanager
def as_unavailable() -> Iterator[None]:
    """Raises Unavailable where the block raises RedisError."""
    try:
        yield
    except RedisError as error:
        log.warning("the store fails: %s", error)
        raise Unavailable.because(ailment(error)) from error


OLDEST: Final = (6, 2)
FULL: Final = 100  # percent of `maxmemory`
NEARLY_FULL: Final = 85  # as in the alert DelayQueueStoreFull
WRONG_CLOCK_S: Final = 10  # an answer can take five
FULL_COVERAGE: Final = "cluster-require-full-coverage"


STORE: Final = Text("存储", "the store")
CUT_OFF: Final = Text(
    "存储运行期间，它的套接字被删除了，数据文件很可能也一起被删了：任务只在它的内存里，它一停止就没有了",
    "the socket of the store was deleted while it runs, and likely its files with it: "
    "its jobs are in its memory alone, and are gone when it stops",
)
MOST_NAMED: Final = 10
# instead of the answer to INFO
NO_INFO: Final[Mapping[str, Any]] = MappingProxyType({"maxmemory": 0})


class Look(NamedTuple):
    """A server's answer to INFO, and the error with which it refuses a write that needs memory; None = it takes it.

    It `is_cut_off` if it answers though its socket, and so likely all of its directory, was deleted.
    """

    info: Mapping[str, Any]
    refusal: RedisError | None
    buckets: Sequence[int] = ()  # that it holds, numbered from 1
    is_cut_off: bool = False

    @property
    def ailment(self) -> Text | None:
        """Why the server takes no new jobs; None if it does."""
        return ailment(self.refusal) or (UNKNOWN if self.refusal else None)

    @property
    def evicts(self) -> bool:
        """Whether it drops jobs when its memory is full."""
        return evicts(self.info)

    @property
    def name(self) -> Text:
        """What the server is called among others: its address would be told to strangers, too."""
        named = ", ".join(map(str, self.buckets[:MOST_NAMED]))
        more = ", …" if len(self.buckets) > MOST_NAMED else ""
        noun = "bucket" if len(self.buckets) == 1 else "buckets"
        return Text(f"桶 {named}{more} 的存储", f"the store of {noun} {named}{more}")


def alarms_of(looks: Sequence[Look]) -> list[Text]:
    """A line for each reason why servers take no jobs, or drop those that they have.

    It names the servers unless all of them have such a reason.
    """
    ailing = [(look, why) for look in looks if (why := look.ailment)]
    evicting = [look for look in looks if look.evicts]
    found = []
    for look, why in ailing:
        name = STORE if len(ailing) == len(looks) else look.name
        found.append(Text(f"{name.zh}不可用：{why.zh}", f"{name.en} is unavailable: {why.en}"))
    for look in evicting:
        name = STORE if len(evicting) == len(looks) else look.name
        policy = look.info.get("maxmemory_policy")
        found.append(
            Text(
                f"{name.zh}的 maxmemory-policy 为 {policy}，内存满了会丢弃任务："
                "请在其配置中设置 `maxmemory-policy noeviction`；"
                "在此之前，可以在 delay-queue 的配置中设置 `require_noeviction = yes`，改为拒绝推送",
                f"{name.en} drops jobs when its memory is full, as maxmemory-policy is {policy}: "
                "set `maxmemory-policy noeviction` in its config; "
                "until then, `require_noeviction = yes` in delay-queue's config refuses pushes instead",
            )
        )
    found += [CUT_OFF for look in looks if look.is_cut_off]
    return list(dict.fromkeys(found))


async def look_at(servers: Servers, tags: Sequence[str]) -> list[Look]:
    """One look at each server that holds one of the buckets with these tags, in order, and at those that none holds.

    Changes nothing. A server that does not answer INFO has told nothing.
    """
    numbers = {tag: number for number, tag in enumerate(tags, 1)}
    looks = await asyncio.gather(
        *(
            _look(servers, found[0], [numbers.pop(tag) for tag in found])
            for found in servers.groups(tags).values()
        )
    )
    if numbers:
        error = ClusterDownError("") if looks else RedisConnectionError("")
        looks.append(Look(NO_INFO, error, list(numbers.values())))
    return looks


async def _look(servers: Servers, tag: str, buckets: Sequence[int]) -> Look:
    async def ask(redis: Redis) -> Look:
        info = NO_INFO
        refusal = await _refusal(redis, tag)
        if isinstance(refusal, MovedError):  # the next one is asked
            raise refusal
        with suppress(ResponseError):  # our user may not ask that
            info = await redis.info()
        return Look(info, refusal, buckets, _is_cut_off(redis))

    try:
        return await servers.call(tag, ask)
    except RedisError as error:
        return Look(NO_INFO, error, buckets)


def _is_cut_off(redis: Redis) -> bool:
    if path := redis.connection_pool.connection_kwargs.get("path"):
        try:
            Path(path).stat()
        except FileNotFoundError:
            return True
        except OSError:  # we may not look there: nobody knows
            return False
    return False


async def _refusal(redis: Redis, tag: str) -> RedisError | None:
    try:
        await require_commands(redis, tag)
        # to write to a key only if it exists, which this one never does, is refused like any other write
        await redis.set(f"{tag}:probe", "", xx=True)
    except RedisError as error:
        return error
    return None


async def health(servers: Servers) -> Health:
    """All servers' answers to INFO added up; 0 if they do not say. Raises Unavailable if none answers."""
    asked = [redis.info() for redis in servers.clients().values()]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    infos: list[dict[str, Any]] = [answer for answer in answers if isinstance(answer, dict)]
    if not infos:
        errors = [answer for answer in answers if isinstance(answer, RedisError)]
        raise Unavailable.because(next(filter(None, map(ailment, errors)), None))
    durable = all(
        info.get("aof_enabled") == 1
        and info.get("aof_last_write_status") == "ok"
        and not evicts(info)
        for info in infos
    ) and not any(map(_is_cut_off, servers.clients().values()))
    return Health(
        sum(info.get("used_memory", 0) for info in infos),
        sum(info.get("maxmemory", 0) for info in infos),
        durable and len(infos) == len(answers),
        ", ".join(sorted({_product(info) for info in infos})),
        list(dict.fromkeys(warning for info in infos for warning in weaknesses(info))),
    )


def _product(info: Mapping[str, Any]) -> str:
    kind = "Valkey" if "valkey_version" in info else "Redis"
    return f"{kind} {info.get(f'{kind.lower()}_version', '')}".strip()


async def alarms(servers: Servers, tags: Sequence[str]) -> list[Text]:
    """A line for each reason why the store takes no jobs, or drops those that it has."""
    return alarms_of(await look_at(servers, tags))


async def durability_warnings(servers: Servers) -> list[str]:
    """A line for each reason why the store may lose jobs or fail; none if all is well."""
    clients = servers.clients()
    lines: list[str] = []
    for address, redis in clients.items():
        name = f"{address}: " if len(clients) > 1 else ""
        lines += [name + warning for warning in await _warnings_of(redis)]
    return lines


async def _warnings_of(redis: Redis) -> list[str]:
    """INFO has nearly all of it; CONFIG GET, the other source, is often missing in hosted Redis."""
    try:
        info: dict[str, Any] = await redis.info()
    except (RedisConnectionError, RedisTimeoutError):  # which is said elsewhere
        return []
    except RedisError:
        return [
            (
                "the store refuses INFO, so it is unknown whether it can lose jobs: "
                "use Redis 6.2 or newer with appendonly yes and maxmemory-policy noeviction"
            )
        ]
    warnings = [weakness.en for weakness in weaknesses(info)]
    if info.get("cluster_enabled") == 1 and await _stops_as_a_whole(redis):
        warnings.append(
            f"one lost server stops the whole Cluster: set `{FULL_COVERAGE} no` in its config"
        )
    return warnings


def weaknesses(info: Mapping[str, Any]) -> list[Text]:
    """A line for each reason, in a server's answer to INFO, why it may lose jobs, misdate them, or fail."""
    version = str(info.get("redis_version"))
    limit = info.get("maxmemory", 0)
    used = limit and info.get("used_memory", 0) * FULL // limit
    now_us = time.time() * 1e6
    ahead_s = round((info.get("server_time_usec", now_us) - now_us) / 1e6)
    warnings = {
        Text(
            f"存储的版本是 {version}：请使用 Redis 6.2 及以上，或者 Valkey",
            f"the store has version {version}: use Redis 6.2 or newer, or Valkey",
        ): _version_parts(version) < OLDEST,
        Text(
            "存储停止时可能丢失任务：请在其配置中设置 `appendonly yes`",
            "the store can lose jobs when it stops: set `appendonly yes` in its config",
        ): info.get("aof_enabled") != 1,
        Text(
            f"存储的时钟比本机{'快' if ahead_s > 0 else '慢'} {abs(ahead_s)} 秒，任务按它的时钟到期：请校准错的那个",
            f"the store's clock is {abs(ahead_s)} s {'ahead of' if ahead_s > 0 else 'behind'} this machine's, "
            "and jobs are due by the store's: set the one that is wrong",
        ): abs(ahead_s) > WRONG_CLOCK_S,
        Text(
            f"存储的内存已用 {used} %，满了之后会拒绝推送：请在其配置中调大 `maxmemory`，或者结束一些任务",
            f"the store's memory is {used} % full, and pushes are refused when it is full: "
            "raise `maxmemory` in its config, or end jobs",
        ): NEARLY_FULL <= used < FULL and not evicts(info),
    }
    return [warning for warning, applies in warnings.items() if applies]


async def _stops_as_a_whole(redis: Redis) -> bool:
    try:
        return bool((await redis.config_get(FULL_COVERAGE))[FULL_COVERAGE] == "yes")
    except (RedisError, KeyError):  # hosted: nobody can change it either
        return False


def _version_parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
