"""Both READMEs, followed word for word."""

from typing import Final

import pytest

from tests.processes import QueueServer

from .markdown import Reader, examples, in_english, read

ENGLISH: Final = "README.md"
CHINESE: Final = "README.zh-CN.md"
PAGES: Final = (ENGLISH, CHINESE)


@pytest.mark.parametrize("page", PAGES)
def test_the_round_with_curl_answers_as_shown(server: QueueServer, page: str) -> None:
    reader = Reader(server)
    round_trip = examples(in_english(read(page)))
    assert len(round_trip) == 3
    for example in round_trip:
        shown, printed = reader.follow(example)
        assert shown == printed


@pytest.mark.parametrize("page", PAGES)
def test_a_stranger_reads_it_in_a_minute(page: str) -> None:
    assert len(read(page).splitlines()) <= 90
