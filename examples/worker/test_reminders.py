import pytest

from delayqueue import testing
from delayqueue.testing import Finished
from reminders import worker


def test_a_reminder_is_sent_to_its_phone(capsys: pytest.CaptureFixture[str]) -> None:
    body = '{"phone": "555-0100", "text": "Ann, see you tomorrow"}'
    assert testing.run(worker, "reminder", body) == Finished()
    assert capsys.readouterr().out == "to 555-0100: Ann, see you tomorrow\n"
