from unittest.mock import create_autospec

from fastapi.testclient import TestClient

from app import app, the_queue
from delayqueue import AsyncClient, testing
from delayqueue.testing import Finished
from tasks import Reminder, worker

REMINDER = Reminder(to="Ann", text="tea")


def test_a_reminder_is_pushed() -> None:
    queue = create_autospec(AsyncClient, instance=True)
    app.dependency_overrides[the_queue] = lambda: queue
    assert TestClient(app).put("/reminders/7", json=REMINDER.model_dump()).status_code == 202
    queue.push.assert_awaited_once_with("reminder", REMINDER, id="reminder-7", delay="1h")


def test_a_reminder_is_sent() -> None:
    assert testing.run(worker, "reminder", REMINDER) == Finished("sent")
