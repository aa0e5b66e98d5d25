"""Reminds people of their appointments, a day, two hours and ten minutes before.

delay-queue worker reminders:worker            sends the messages; run as many as you like
python reminders.py book NAME PHONE TIME       an appointment: 2026-12-24T15:30, in local time
python reminders.py move NAME PHONE NEW_TIME   it is at another time
python reminders.py cancel NAME                it is off: send no more reminders of it

The queue is at $DELAYQUEUE_URL.
"""

import json
import sys
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from delayqueue import Client, Worker
from delayqueue.worker import ReservedJob

BEFORE = {
    "tomorrow": timedelta(days=1),
    "in two hours": timedelta(hours=2),
    "in ten minutes": timedelta(minutes=10),
}

queue = Client()
worker = Worker()


@dataclass(frozen=True)
class Reminder:
    """A message to send."""

    phone: str
    text: str


def book(name: str, phone: str, time: datetime) -> None:
    for when, before in BEFORE.items():
        if time - before < datetime.now(time.tzinfo):
            continue
        queue.push(
            "reminder",
            json.dumps(asdict(Reminder(phone, f"{name}, see you {when}"))),
            due=time - before,
            expire=before,  # when the appointment begins it is too late for a reminder
            tags=[f"appointment:{name}"],
        )


def cancel(name: str) -> None:
    print("reminders cancelled:", queue.cancel(f"appointment:{name}"))


@worker.on("reminder")
def remind(job: ReservedJob) -> None:
    reminder = Reminder(**json.loads(job.body))
    send(reminder.phone, reminder.text)


def send(phone: str, text: str) -> None:
    """Yours: a text message."""
    print(f"to {phone}: {text}", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["book", name, phone, time]:
            book(name, phone, datetime.fromisoformat(time).astimezone())
        case ["move", name, phone, time]:
            cancel(name)
            book(name, phone, datetime.fromisoformat(time).astimezone())
        case ["cancel", name]:
            cancel(name)
        case _:
            sys.exit(__doc__)
