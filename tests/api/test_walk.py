"""How many functions a request calls: no more than bench/walk.json says, whatever the load of this machine."""

from typing import Final

import pytest

from bench.counted import Call
from bench.walk import WAYS, Length, kept, length, table, walk

BACKGROUND: Final = {"engine/heartbeat.py", "engine/history.py", "delivery/subscribed_topics.py"}


@pytest.fixture(scope="module")
def ways() -> dict[str, list[Call]]:
    """The calls of every way."""
    return walk()


@pytest.mark.parametrize("name", WAYS)
def test_a_way_is_no_longer_than_is_kept(name: str, ways: dict[str, list[Call]]) -> None:
    found, most = length(ways[name]), kept()[name]
    hint = f"shorten the way, or keep its length: python -m bench.walk --keep; {found}, not {most}"
    assert found.calls <= most.calls, hint
    assert found.files <= most.files, hint


@pytest.mark.parametrize("name", WAYS)
def test_a_way_begins_at_a_socket_and_has_nothing_of_the_background(
    name: str, ways: dict[str, list[Call]]
) -> None:
    assert ways[name][0].function.endswith(".data_received")
    assert not BACKGROUND & {call.file for call in ways[name]}


def test_the_table_tells_the_difference_to_what_is_kept() -> None:
    (*_, row) = table({"push": Length(70, 5, 60, 22)}, {"push": Length(137, 18, 60, 36)})
    assert row == "| push | 70 (-67) | 5 (-13) | 60 | 22 (-14) |"
