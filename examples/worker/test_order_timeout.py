from pathlib import Path

import pytest

import order_timeout
from delayqueue import testing
from delayqueue.testing import Finished


@pytest.mark.parametrize(
    ("before", "after"),
    [("unpaid", "closed"), ("paid", "paid"), ("closed", "closed")],
)
def test_only_an_unpaid_order_is_closed(
    before: str, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order_timeout, "SHOP", tmp_path / "shop.db")
    with order_timeout.shop() as database:
        database.execute("INSERT INTO orders VALUES ('1001', ?)", (before,))
    assert testing.run(order_timeout.worker, "order-timeout", "1001") == Finished()
    assert order_timeout.state("1001") == after
