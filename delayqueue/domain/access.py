"""Access control: roles, the tokens and groups that grant them, and the topics that a grant covers. No IO, no HTTP."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from delayqueue.errors import Forbidden

MIN_TOKEN_CHARS: Final = 16
TOPICS: Final = re.compile(r"[^\s*][^*]*\*?|\*")  # a topic, or a prefix and *
GRANT: Final = re.compile(
    rf"(produce|consume|call|view|admin):([A-Za-z0-9._~+/=-]{{{MIN_TOKEN_CHARS},}})(?::({TOPICS.pattern}))?"
)

EVERYBODY: Final = "*"  # instead of a group: whoever is logged in


class Role(StrEnum):
    """What a token or a group allows. Each endpoint declares which roles may call it (web/endpoints/)."""

    PRODUCE = "produce"
    CONSUME = "consume"
    CALL = "call"  # beside produce: pushes jobs with a call
    VIEW = "view"  # reads, and changes nothing
    ADMIN = "admin"  # may do everything


class Grant(NamedTuple):
    """One `role:token:topics`. `topics` is a topic, or a prefix of topics and "*"."""

    role: Role
    token: str
    topics: str


def parse_grant(text: str) -> Grant:
    """Parse `role:token` or `role:token:topics`.

    Raises ValueError if it is neither; the message does not show the text.
    """
    parts = GRANT.fullmatch(text.strip())
    if not parts:
        raise ValueError(
            "must be ROLE:TOKEN or ROLE:TOKEN:TOPICS with the ROLE produce, consume, call, view or admin, "
            f"a TOKEN of at least {MIN_TOKEN_CHARS} letters, digits and . _ ~ + / = -, "
            "and a topic, or its beginning and *, as TOPICS"
        )
    return Grant(Role(parts[1]), parts[2], parts[3] or "*")


class GroupRole(NamedTuple):
    """One `role:group`: the role of a group's users, whom a proxy has logged in."""

    role: Role
    group: str

    def __str__(self) -> str:
        return f"{self.role}:{self.group}"


def parse_group_role(text: str) -> GroupRole:
    """Parse `role:group`; the group may contain colons. Raises ValueError if it is something else."""
    role, _, group = map(str.strip, text.partition(":"))
    if role not in set(Role) or not group:
        raise ValueError(
            "must be ROLE:GROUP, with commas between; the ROLE produce, consume, call, view or admin, "
            f"the GROUP as the proxy names it, or {EVERYBODY} for everybody who is logged in"
        )
    return GroupRole(Role(role), group)


class Scope(NamedTuple):
    """The topics that a client may reach: each entry is a topic, or a prefix of topics and "*"."""

    entries: tuple[str, ...]

    @classmethod
    def of(cls, entries: Iterable[str]) -> "Scope":
        """Build the scope of several entries; EVERYWHERE if one of them is "*"."""
        ordered = tuple(sorted(set(entries)))
        return EVERYWHERE if "*" in ordered else cls(ordered)

    def allows(self, topic: str) -> bool:
        """Whether the scope covers the topic. The scripts decide in the same way (_call.lua)."""
        return any(
            topic.startswith(entry[:-1]) if entry.endswith("*") else topic == entry
            for entry in self.entries
        )

    def check(self, topics: Iterable[str] | None) -> None:
        """Raises Forbidden unless the scope covers all these topics; None = every topic."""
        if self is EVERYWHERE:
            return
        if topics is None:
            raise Forbidden.of(
                "此token只能访问部分topic：请使用可访问全部topic的token；请求能限定topic时，也可以指定其中之一",
                "this token is limited to some topics: use one for all topics, or name one if that limits the request",
            )
        for topic in topics:
            if not self.allows(topic):
                raise Forbidden.of(
                    f"此token不能访问topic：{topic}", f"this token is not for topic {topic}"
                )


EVERYWHERE: Final = Scope(("*",))
