"""The page on the Python client: each program on it runs and prints what its comments say."""

import re
import sys

from tests.processes import QueueServer

from .markdown import at, run, some_blocks

PAGE = "docs/python.md"


def test_its_programs_print_what_their_comments_say(server: QueueServer) -> None:
    for program in some_blocks(PAGE, "python"):
        shown = re.findall(r"print\(.*\)  # (.*)$", program.text, re.MULTILINE)
        assert run([sys.executable], at(server, program.text)).splitlines() == shown
