"""The mark at the head of a page: whether what it describes is stable, which docs/stability.md explains."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from scripts.links import CHINESE

if TYPE_CHECKING:
    from pathlib import Path

STABLE: Final = (
    "**Stable**: changes only with a new major version",
    "**稳定**：只在新的主版本里改变",
)
SETTLING: Final = (
    "**Settling**: new, and may still change with a minor version",
    "**调整中**：较新，次版本里还可能改变",
)
BOTH: Final = (
    "**Stable, with parts that are settling**",
    "**稳定，部分内容仍在调整**",
)
MEANING: Final = ("what that means", "这是什么意思")
# by the name of the page; those that describe nothing of the product's own are not here
MARKS: Final = {
    "api": BOTH,
    "config": STABLE,
    "migration": STABLE,
    "reliability": STABLE,
    "durability": STABLE,
    "upgrading": STABLE,
    "languages": STABLE,
    "cli": SETTLING,
    "python": SETTLING,
    "metrics": SETTLING,
    "admin": SETTLING,
    "limits": SETTLING,
    "schedules": SETTLING,
    "subscribers": SETTLING,
    "operations": SETTLING,
    "scaling": SETTLING,
    "beanstalk": SETTLING,
    "beanstalkd": SETTLING,
    "calls": SETTLING,
    "groups": SETTLING,
    "outbox": SETTLING,
    "proxy-login": SETTLING,
    "task-queues": SETTLING,
    "changed-tasks": SETTLING,
    "php": BOTH,
    "laravel": SETTLING,
    "symfony": SETTLING,
    "yii": SETTLING,
    "thinkphp": SETTLING,
    "hyperf": SETTLING,
    "django": SETTLING,
    "fastapi": SETTLING,
    "sentry": SETTLING,
    "kubernetes": SETTLING,
    "autoscaling": SETTLING,
}
# the title, the link to the twin, and the mark of before
HEAD: Final = re.compile(
    r"\A(# .*\n\n(?:\[(?:English|中文)\]\(.*\)\n\n)?)(?:> \*\*.*stability.*\n\n)?"
)


def with_mark(text: str, page: Path) -> str:
    """The page with its mark, or without one if it has none."""
    said = MARKS.get(page.name.replace(CHINESE, ".md").removesuffix(".md"))
    is_chinese = page.name.endswith(CHINESE)
    folder = "../" if page.parent.name == "howto" else ""
    link = f"{folder}stability{CHINESE if is_chinese else '.md'}"
    mark = f"> {said[is_chinese]} ([{MEANING[is_chinese]}]({link}))\n\n" if said else ""
    if is_chinese:
        mark = mark.replace(" ([", "（[").replace("))", ")）")
    return HEAD.sub(lambda found: found[1] + mark, text, count=1)
