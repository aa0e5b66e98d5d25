"""docs/operations.md explains every kind of damage, and shows what fsck prints."""

import pytest

from delayqueue.domain import damage

from .markdown import read

PAGE = read("docs/operations.md")


@pytest.mark.parametrize("kind", damage.KINDS)
def test_the_page_explains_every_kind(kind: str) -> None:
    assert f"| `{kind}` | " in PAGE


def test_the_page_shows_a_finding_as_it_is_printed() -> None:
    assert f"bucket 1: unplaced: {damage.sentence('unplaced', 'mail', 'mail-1')}\n" in PAGE
