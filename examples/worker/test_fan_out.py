from pathlib import Path

import pytest

import fan_out
from delayqueue import testing
from delayqueue.testing import Finished, Released

ORDER = '{"id": "1001", "item": "tea", "mail": "ann@example.org"}'


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "SHOP", tmp_path / "shop.db")


def rows(table: str) -> int:
    with fan_out.shop() as database:
        (count,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(count)


def test_there_is_no_mail_without_a_parcel_and_everything_is_done_once() -> None:
    assert testing.run(fan_out.worker, "order-paid", ORDER) == Released("pack: OutOfStock: tea")
    assert [rows(table) for table in ("invoices", "parcels", "mails")] == [1, 0, 0]
    fan_out.stock("tea", 1)
    for _ in range(2):  # as when the worker dies before it can say that it is done
        assert testing.run(fan_out.worker, "order-paid", ORDER, attempt=2) == Finished()
    assert [rows(table) for table in ("invoices", "parcels", "mails")] == [1, 1, 1]
