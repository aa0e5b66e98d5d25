from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Request

from delayqueue import AsyncClient
from tasks import Reminder


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[dict[str, AsyncClient], None]:
    async with AsyncClient() as queue:  # at $DELAYQUEUE_URL
        yield {"queue": queue}


app = FastAPI(lifespan=lifespan)


def the_queue(request: Request) -> AsyncClient:
    queue: AsyncClient = request.state.queue
    return queue


@app.put("/reminders/{number}", status_code=202)
async def remind(
    number: int, reminder: Reminder, queue: Annotated[AsyncClient, Depends(the_queue)]
) -> Reminder:
    await queue.push("reminder", reminder, id=f"reminder-{number}", delay="1h")
    return reminder
