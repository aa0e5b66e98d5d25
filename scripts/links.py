"""Where the links of a page lead, and where those of its Chinese twin do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

CHINESE: Final = ".zh-CN.md"
TWIN: Final = re.compile(r"(?=\.(?:md|png)$)")  # of a page or a picture


def anchors(page: Path) -> list[str]:
    """What a Markdown renderer calls the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]


def in_chinese(page: Path, link: str) -> str:
    """A link of an English page, as its Chinese twin has it: to the twin of its target, if that has one."""
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    twin = target.with_name(TWIN.sub(".zh-CN", target.name))
    if path.startswith("http") or ".zh-CN." in target.name or not twin.is_file():
        return link
    place = TWIN.sub(".zh-CN", path)
    return f"{place}#{anchors(twin)[anchors(target).index(anchor)]}" if anchor else place
