"""A reader who follows a page: saves its files and types in its commands, in order, in a folder of their own."""

import re
from pathlib import Path
from typing import Final

from tests.processes import QueueServer

from .markdown import Block, Example, Reader, at, blocks, read, typed, typed_in

DIFFERS: Final = re.compile(r"<\w+>")


class Follower:
    """The reader's server is at another address than on the pages; all else is as they say."""

    def __init__(self, folder: Path, server: QueueServer) -> None:
        self._folder = folder
        self._server = server
        self._reader = Reader(server)

    def follow(self, page: str) -> None:
        """Follow a whole page. Raises AssertionError if something else is printed than is shown."""
        found = blocks(read(page))
        assert any(block.title or block.language == "console" for block in found)
        for block in found:
            if block.title:
                self._save(block)
            elif block.language == "console":
                for example in typed(block):
                    self._type(example)

    def _save(self, block: Block) -> None:
        path = self._folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(at(self._server, block.text), encoding="utf-8")

    def _type(self, example: Example) -> None:
        printed = self.run(self._reader.command(example))
        if example.answer.startswith("{"):
            shown, printed = self._reader.compare(example.answer, printed)
            assert shown == printed, example.command
        else:
            said = "".join(_pattern(line) for line in example.answer.splitlines())
            assert re.fullmatch(said, printed), f"{example.command}\n{printed}"

    def run(self, command: str) -> str:
        """What a command prints on both outputs. It must succeed."""
        status, printed = typed_in(command, self._folder, url=self._server.url)
        assert status == 0, f"{command}\n{printed}"
        return printed


def _pattern(line: str) -> str:
    """The line as a regular expression, with anything for a word in angle brackets. Column widths do not count."""
    words = [".+?".join(map(re.escape, DIFFERS.split(word))) for word in line.split()]
    return "[ \t]*" + "[ \t]+".join(words) + "[ \t]*\n"
