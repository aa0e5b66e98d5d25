"""Which commands the store does not let us call: its ACL forbids them to our user, or its config renames them."""

from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, RedisError

from delayqueue.errors import Text

# What the scripts call, and what each server needs beside them. What there is something else for is left out: FCALL,
# FUNCTION, EVALSHA, INFO, and SSUBSCRIBE, without which servers hear late of each other's jobs, as their log says.
NEEDED: Final = """
EVAL PING SET
DEL EXISTS INCRBY PEXPIRE RENAME SCAN TIME TYPE UNLINK
HDEL HEXISTS HGET HGETALL HINCRBY HKEYS HLEN HMGET HSCAN HSET HSETNX HSTRLEN
LINDEX LLEN LPOS LPUSH LRANGE LREM LSET LTRIM RPUSH
SADD SCARD SISMEMBER SREM SSCAN SPUBLISH
ZADD ZCARD ZCOUNT ZLEXCOUNT ZMSCORE ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZREM ZREMRANGEBYRANK
ZREVRANGEBYLEX ZREVRANGEBYSCORE ZSCAN ZSCORE
"""
MOST_NAMED: Final = 10
# KEYS: a key of ours, which may be a channel, too. Returns those of the commands, ARGV, that cannot be called.
# Redis before 7.0 does not tell.
LACKING: Final = """
local found, may_call = {}, redis.acl_check_cmd
for _, command in ipairs(may_call and ARGV or {}) do
  local exists, allowed = pcall(may_call, command, KEYS[1], KEYS[1])
  if not (exists and allowed) then found[#found + 1] = command end
end
return found
"""


class LackingError(RedisError):
    """The store does not let us call these commands."""

    def __init__(self, commands: list[str]) -> None:
        more = ["…"] if len(commands) > MOST_NAMED else []
        named = [*commands[:MOST_NAMED], *more]
        self.text: Text = Text(
            f"不允许调用 {'、'.join(named)}：请在 ACL 中允许我们的用户"
            "对以 bucket_name 开头的键和频道使用这些命令，也不要给命令改名",
            f"it does not let us call {', '.join(named)}: allow our user that in its ACL, on keys and channels "
            "that begin like bucket_name, and rename no commands",
        )
        super().__init__(self.text.en)


async def require_commands(redis: Redis, tag: str) -> None:
    """Raises LackingError if this server refuses a command that we need for the keys with this tag."""
    try:
        raw: Any = await redis.eval(LACKING, 1, f"{tag}:ready", *NEEDED.split())
    except NoPermissionError:
        raise LackingError(["EVAL"]) from None
    if raw:
        raise LackingError([command.decode() for command in raw])
