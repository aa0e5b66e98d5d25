"""docs/limits.md is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from delayqueue.config.loading import load
from delayqueue.domain.limit import Limit

from .markdown import Reader, blocks, examples, read

if TYPE_CHECKING:
    from pathlib import Path

    from tests.processes import Processes, StoreServer

PAGE: Final = read("docs/limits.md")


def test_the_request_and_the_section_say_the_same(
    processes: Processes, redis_server: StoreServer, tmp_path: Path
) -> None:
    reader = Reader(processes.server(redis_server, language="en"))
    for example in examples(PAGE):
        shown, printed = reader.follow(example)
        assert shown == printed
    [block] = blocks(PAGE, "ini")
    path = tmp_path / "conf"
    path.write_text(block.text, encoding="utf-8")
    sections = load(path, {}).sections
    assert sections
    assert sections.limits == {"invoice": Limit(rate=50, concurrency=10, declared=True)}
