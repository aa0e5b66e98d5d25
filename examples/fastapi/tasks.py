from pydantic import BaseModel

from delayqueue import Worker


class Reminder(BaseModel):
    to: str
    text: str


worker = Worker()


@worker.on("reminder", max_attempts=5)
async def send(reminder: Reminder) -> str:
    print(f"to {reminder.to}: {reminder.text}")  # yours
    return "sent"
