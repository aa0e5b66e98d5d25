"""Cursors: opaque to clients, and the same in two versions of the server that work on one store."""

from typing import Final

import pytest

from delayqueue.errors import Invalid
from delayqueue.store.listings import Wanted
from delayqueue.store.paging import page_of, read_cursor, write_cursor
from delayqueue.store.types import Listing, Range

WRITTEN_EARLIER: Final[dict[tuple[object, ...], str]] = {
    Wanted("a", "b", "c"): "Wzg0MDA0NTYyNSwgMSwgInBsYWNlIl0=",
    Listing("mail", "vip", "delayed", Range(1, 2)): "WzU5NTQwMjI2LCAxLCAicGxhY2UiXQ==",
    ("buried", "mail", "no address"): "WzkwNTUxMDc5MiwgMSwgInBsYWNlIl0=",
}


@pytest.mark.parametrize("listing", WRITTEN_EARLIER, ids=lambda listing: type(listing).__name__)
def test_a_listing_goes_on_at_a_server_of_another_version(listing: tuple[object, ...]) -> None:
    """The cursor holds a checksum of the listing's repr: of the names of its class and fields, too."""
    assert read_cursor(WRITTEN_EARLIER[listing], listing) == (1, "place")


@pytest.mark.parametrize("place", ["[" * 20_000, "[[], 1]", "[1]", "{", "null", "[null]", "1"])
def test_a_place_that_was_made_up_is_refused(place: str) -> None:
    listing = ("schedules", "t")
    with pytest.raises(Invalid):
        page_of(["a", "b"], lambda item: (item, 1), listing, 1, write_cursor(listing, 0, place))
