"""The page on the Python client: each program on it runs and prints what its comments say."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from .markdown import at, run, some_blocks

if TYPE_CHECKING:
    from tests.processes import QueueServer

PAGE = "docs/python.md"


def test_its_programs_print_what_their_comments_say(server: QueueServer) -> None:
    for program in some_blocks(PAGE, "python"):
        shown = re.findall(r"print\(.*\)  # (.*)$", program.text, re.MULTILINE)
        assert run([sys.executable], at(server, program.text)).splitlines() == shown
