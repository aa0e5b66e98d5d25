"""Refunds by WeChat Pay. Replaces a table with status, message, tries and next_time, and the cron job that reads it.

python refunds.py ask ORDER CENTS   a customer wants money back
python refunds.py work              a worker; run as many as you like, under a supervisor
python refunds.py show ORDER        status, when it is due, messages; for a month
python refunds.py now ORDER         do not wait for the next attempt
python refunds.py cancel ORDER      all jobs of the order

The queue is at $DELAYQUEUE_URL, the bank at $BANK: a URL that answers 200, 4xx = never, anything else = try again.
"""

import json
import os
import sys
import time
from datetime import UTC, datetime
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from delay_queue import QueueError, insist, queue

BANK_S = 30  # how long the bank may take: less than the TTR


def ask(order: str, cents: int) -> None:
    queue(
        "push",
        topic="refund",
        id=f"refund-{order}",
        ttr=60,  # a worker that is silent for a minute is dead: another one gets the job
        body=json.dumps({"refund": f"refund-{order}", "cents": cents}),
        tags=[f"order:{order}"],  # the business key
        retry={"preset": "wechat"},  # after 15s, 15s, 30s, 3m ... 6h; then it is buried
        if_exists="keep",  # asking again while it is under way changes nothing
        retain=30 * 86400,
    )


def work() -> None:
    while True:
        job: dict[str, Any] | None = insist("pop", topic="refund")
        if not (isinstance(job, dict) and "receipt" in job):
            time.sleep(0.1)  # nothing was due for three minutes
            continue
        status, said = call_bank(job["body"])
        if status == 200:
            verb = "finish"
        elif 400 <= status < 500:
            verb = "bury"  # trying again would not help
        else:
            verb = "release"  # the schedule says when it is delivered again
        try:
            insist(verb, id=job["id"], receipt=job["receipt"], message=said)
            print(f"{job['id']}: {verb}: {said}", flush=True)
        except QueueError as error:
            # 2: cancelled meanwhile; 4: we were too slow, another worker has it
            print(f"{job['id']}: {error}", flush=True)


def call_bank(body: str) -> tuple[int, str]:
    """Returns status and text; status 0 if there was no answer."""
    try:
        try:
            with urlopen(os.environ["BANK"], body.encode(), timeout=BANK_S) as response:
                return response.status, text_of(response.read())
        except HTTPError as error:
            return error.code, text_of(error.read())
    except (OSError, HTTPException) as error:
        return 0, str(error)


def text_of(answer: bytes) -> str:
    return answer.decode(errors="replace")  # it may be in GBK


def show(order: str) -> None:
    for job in queue("list", tag=f"order:{order}")["jobs"]:
        due = datetime.fromtimestamp(job["delay"], UTC).isoformat()
        print(f"{job['id']} {job['state']} {due} {job['message']}")
        for attempt in job["attempts"]:
            print(f"  attempt {attempt['attempt']}: {attempt['message']}")


match sys.argv[1:]:
    case ["ask", order, cents]:
        ask(order, int(cents))
    case ["work"]:
        work()
    case ["show", order]:
        show(order)
    case ["now", order]:
        queue("kick", id=f"refund-{order}")
    case ["cancel", order]:
        queue("cancel", tag=f"order:{order}")
    case _:
        sys.exit(__doc__)
