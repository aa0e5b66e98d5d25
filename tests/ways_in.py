"""The server with another way in, for tests that compare both: python -m tests.ways_in aiohttp, or one with a fault."""

import re
import sys
from contextlib import AbstractContextManager
from typing import Final
from unittest.mock import patch

from delayqueue.cli import main
from delayqueue.web import express, head


def _bare_line_feeds(pattern: re.Pattern[bytes]) -> re.Pattern[bytes]:
    return re.compile(pattern.pattern.replace(rb"\r\n", rb"\r?\n"))


def _without(header: str) -> AbstractContextManager[object]:
    return patch.object(head, "_NOT_PLAIN", head._NOT_PLAIN - {header})


WAYS_IN: Final[dict[str, list[AbstractContextManager[object]]]] = {
    "aiohttp": [
        patch.object(express, "read_head", lambda _: None),
        patch.object(express, "may_become_plain", lambda _: False),
    ],
    # faults, which a comparison with aiohttp must find
    "bare-line-feeds": [
        patch.object(head, "_REQUEST", _bare_line_feeds(head._REQUEST)),
        patch.object(head, "_FIELD", _bare_line_feeds(head._FIELD)),
    ],
    "chunks-passed-over": [_without("transfer-encoding")],
    "expectations-passed-over": [_without("expect")],
}

if __name__ == "__main__":
    for each in WAYS_IN[sys.argv.pop()]:
        each.__enter__()
    sys.exit(main())
