"""Whether a server has on its disk what it has answered: `appendonly`, and `appendfsync always` so that it syncs first.

WAITAOF would be another way to know, but does not work: while appendfsync is everysec, Valkey and Redis before 8.0
answer it before they have synced (779 answers, 5 syncs, seen with strace on Valkey 9.1.2; redis/redis#13793), and Redis
8 answers it once a second.
"""

from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from delayqueue.config.config import Config
from delayqueue.errors import Text

FSYNC: Final = "fsync"
STORE: Final = Text("存储", "the store")
NEEDED: Final = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}


class NotDurableError(RedisError):
    """A server answers before it has synced; the message says why and how to fix it."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text: Text = text


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
