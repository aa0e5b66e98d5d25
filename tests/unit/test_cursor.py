"""Cursors: opaque to clients, and the same in two versions of the server that work on one store."""

from typing import Final

import pytest

from delayqueue.store.listings import Wanted
from delayqueue.store.paging import read_cursor
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
