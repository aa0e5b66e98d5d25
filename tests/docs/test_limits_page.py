"""docs/limits.md is true."""

from pathlib import Path
from typing import Final

from delayqueue.config.loading import load
from delayqueue.domain.limit import Limit

from .markdown import blocks, read

PAGE: Final = read("docs/limits.md")


def test_the_section_sets_the_limits(tmp_path: Path) -> None:
    [block] = blocks(PAGE, "ini")
    path = tmp_path / "conf"
    path.write_text(block.text, encoding="utf-8")
    sections = load(path, {}).sections
    assert sections
    assert sections.limits == {"invoice": Limit(rate=50, concurrency=10, declared=True)}
