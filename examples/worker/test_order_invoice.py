from pathlib import Path

import pytest

import order_invoice
from delayqueue import testing
from delayqueue.testing import Finished, Released

ORDER = {"order": 1001, "items": {"tea": 500, "cup": 1250}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(order_invoice, "FOLDER", tmp_path)
    return tmp_path


def test_an_order_without_an_address_is_archived_and_mailed_when_there_is_one(folder: Path) -> None:
    verdict = testing.run(order_invoice.worker, "order-invoice", ORDER)
    assert isinstance(verdict, Released)
    assert verdict.message.startswith("mail_invoice: FileNotFoundError")
    assert (folder / "1001.archive").read_text() == "write_invoice\nprint_invoice"
    (folder / "1001.address").write_text("a@example.com")
    verdict = testing.run(order_invoice.worker, "order-invoice", ORDER, attempt=2)
    assert isinstance(verdict, Finished)
    assert verdict.message.endswith("1001.txt; sent to a@example.com; 3 of 3 done")
    assert (folder / "1001.mail").read_text() == "To: a@example.com\nWith: 1001.txt\n"
