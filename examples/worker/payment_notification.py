"""Tells merchants that they were paid, again and again until they say "success", as Alipay does.

delay-queue worker payment_notification:worker   calls them; run as many as you like
python payment_notification.py push TRADE URL    a trade was paid: call the merchant's URL
python payment_notification.py show TRADE        its state, and what the merchant said

The queue is at $DELAYQUEUE_URL.
"""

import sys
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus

from aiohttp import ClientSession, ClientTimeout

from delayqueue import Bury, Client, Retry, Worker

TOPIC = "payment-notification"
PATIENCE = ClientTimeout(total=30)  # how long a merchant may take to answer
LONGEST_WAIT_S = 3600.0  # even if a merchant asks for more
MOST_BYTES = 100  # of the merchant's answer

queue = Client()
worker = Worker(concurrency=100)  # handlers mostly wait for merchants


@dataclass(frozen=True)
class Notification:
    """The notification for a merchant."""

    trade: str
    url: str


@dataclass(frozen=True)
class Answer:
    """What a merchant said; `wait_s`: ask again after that many seconds at the earliest."""

    status: int
    text: str
    wait_s: float | None = None


class NotAccepted(Exception):
    """The merchant has not said "success"; the job's schedule says when to ask again."""


def push(trade: str, url: str) -> None:
    queue.push(
        TOPIC,
        Notification(trade, url),
        id=f"payment-{trade}",
        # after a failure 2m, 10m, 10m, 1h, 2h, 6h, 15h; then it is buried
        retry="alipay",
        retain=timedelta(days=7),
    )


def show(trade: str) -> None:
    job = queue.get(f"payment-{trade}")
    if job is None:
        sys.exit(f"no trade {trade}")
    print(job.state)
    for attempt in job.attempts:
        said, _, _traceback = attempt.message.partition("\n")
        print(f"  attempt {attempt.attempt}: {said}")


@worker.on(TOPIC)
async def notify(notification: Notification) -> None:
    answer = await call(notification)
    if (answer.status, answer.text) == (HTTPStatus.OK, "success"):
        return
    if answer.status == HTTPStatus.GONE:
        raise Bury("the merchant has closed this address")
    if answer.wait_s is not None:
        raise Retry(min(answer.wait_s, LONGEST_WAIT_S), "the merchant asks to wait")
    raise NotAccepted(f"{answer.status} {answer.text}")


async def call(notification: Notification) -> Answer:
    """Ask the merchant once. If nobody answers, the error is a failure like any other."""
    form = {"trade_no": notification.trade, "trade_status": "TRADE_SUCCESS"}
    async with (
        ClientSession(timeout=PATIENCE) as session,
        session.post(notification.url, data=form) as response,
    ):
        said = await response.content.read(MOST_BYTES)
        wait = response.headers.get("Retry-After", "")
        return Answer(
            response.status,
            said.decode(errors="replace").strip(),
            float(wait) if wait.isdecimal() else None,
        )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["push", trade, url]:
            push(trade, url)
        case ["show", trade]:
            show(trade)
        case _:
            sys.exit(__doc__)
