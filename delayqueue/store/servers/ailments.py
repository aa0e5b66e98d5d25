"""What can be wrong with a store for a while, by its errors: it heals by itself, or once somebody has seen to it."""

import re
from typing import Final

from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.errors import Text
from delayqueue.store.servers.connection import NotReplicatedError
from delayqueue.store.servers.disk import NotDurableError
from delayqueue.store.servers.eviction import EvictsError

UNKNOWN: Final = Text("拒绝调用，详见日志", "it refuses calls; the log says more")
# By the error's class; a class stands before the one that it is derived from.
OF_CLASS: Final[dict[type[RedisError], Text]] = {
    BusyLoadingError: Text("正在加载数据", "it is loading its data"),
    ReadOnlyError: Text(
        "它是只读副本：请填写 master 或 Sentinel 的地址",
        "it is a read-only replica: name the master, or the Sentinels",
    ),
    MasterDownError: Text("与它的 master 断开了连接", "it has lost its master"),
    ClusterDownError: Text(
        "Cluster 中没有服务器负责所需的槽", "no server of the Cluster holds a slot that is needed"
    ),
    OutOfMemoryError: Text(
        "内存已满，不接受新任务：请在其配置中调大 `maxmemory`，或者结束一些任务",
        "its memory is full, so it takes no new jobs: raise `maxmemory` in its config, or end jobs",
    ),
    TryAgainError: Text("Cluster 正在移动槽", "the Cluster is moving a slot"),
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
# By the beginning of the message, as Redis and its scripts report it.
OF_WORD: Final = {
    "LOADING": OF_CLASS[BusyLoadingError],
    "READONLY": OF_CLASS[ReadOnlyError],
    "CLUSTERDOWN": OF_CLASS[ClusterDownError],
    "MASTERDOWN": OF_CLASS[MasterDownError],
    "OOM": OF_CLASS[OutOfMemoryError],
    "MISCONF": Text("无法写入磁盘：请腾出空间", "it cannot write to its disk: make room there"),
    "NOREPLICAS": OF_CLASS[NotReplicatedError],
    "BUSY": Text("正忙于执行脚本", "it is busy with a script"),
}


def ailment(error: BaseException | None) -> Text | None:
    """What ails the store, in words that tell a stranger no address; None if this error would not heal."""
    if isinstance(error, AuthenticationError):  # a ConnectionError to redis-py
        return None
    for kind, text in OF_CLASS.items():
        if isinstance(error, kind):
            return text
    word = re.match(r"[A-Z]+", str(error))
    return OF_WORD.get(word[0]) if word else None
