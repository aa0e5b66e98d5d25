"""Payment notifications as Alipay sends them: to a merchant's URL, again and again until it says "success".

Replaces a notifier of your own with its timers.

python notify.py push TRADE URL [DELAYS]   by Alipay's schedule, or your own: 1s,1s,1m
python notify.py work                      a worker; run as many as you like, under a supervisor
python notify.py show TRADE                its state

The queue is at $DELAYQUEUE_URL.
"""

import json
import sys
import time
from datetime import UTC, datetime
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from delay_queue import QueueError, insist, queue

MERCHANT_S = 30  # how long the merchant may take: less than the TTR


def push(trade: str, url: str, delays: str | None = None) -> None:
    form = {"trade_no": trade, "trade_status": "TRADE_SUCCESS"}
    queue(
        "push",
        topic="notify",
        id=f"notify-{trade}",
        ttr=60,
        body=json.dumps({"url": url, "form": form}),
        # alipay: 2m, 10m, 10m, 1h, 2h, 6h, 15h after a failure; then buried
        retry={"delays": delays.split(",")} if delays else {"preset": "alipay"},
        retain=7 * 86400,
    )


def work() -> None:
    while True:
        job: dict[str, Any] | None = insist("pop", topic="notify")
        if not (isinstance(job, dict) and "receipt" in job):
            time.sleep(0.1)  # nothing was due for three minutes
            continue
        try:
            said = call_merchant(**json.loads(job["body"]))
        except Exception as error:  # whatever it is, the queue has to know
            said = f"{type(error).__name__}: {error}"
        verb = "finish" if said.strip() == "success" else "release"
        try:
            insist(verb, id=job["id"], receipt=job["receipt"], message=said)
            print(f"{job['id']}: {verb}: {said}", flush=True)
        except QueueError as error:
            # 2: deleted meanwhile; 4: we were too slow, another worker has it
            print(f"{job['id']}: {error}", flush=True)


def call_merchant(url: str, form: dict[str, Any]) -> str:
    try:
        with urlopen(url, urlencode(form).encode(), timeout=MERCHANT_S) as response:
            return str(response.read().decode(errors="replace"))  # it may be in GBK
    except (OSError, HTTPException) as error:  # no answer, or a status of 400 and above
        return str(error)


def show(trade: str) -> None:
    job = queue("get", id=f"notify-{trade}")
    if job is None:
        sys.exit(f"no notification of {trade}")
    due = datetime.fromtimestamp(job["delay"], UTC).isoformat()
    print(f"{job['id']} {job['state']} {due} after {job['attempt']} attempts: {job['message']}")


match sys.argv[1:]:
    case ["push", trade, url, *delays]:
        push(trade, url, *delays)
    case ["work"]:
        work()
    case ["show", trade]:
        show(trade)
    case _:
        sys.exit(__doc__)
