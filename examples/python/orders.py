"""Closes orders that are not paid in time, with this project's client.

python orders.py place ORDER SECONDS   an order, closed after SECONDS unless it is paid
python orders.py paid ORDER            it is paid: cancel the job
python orders.py work [JOBS]           a worker for JOBS jobs, or forever; run as many as you like
"""

import json
import sys
import time

from delayqueue import Client
from delayqueue.client import QueueError, ReservedJob, TooMany, TransportError, Unavailable

TTR_S = 60  # a worker that is silent for a minute is dead: another one gets the job

queue = Client()  # at $DELAYQUEUE_URL, else at http://localhost:9277


def place(order: str, seconds: float) -> None:
    queue.push(
        "order-close",
        json.dumps({"order": order}),
        id=f"close-{order}",  # an id is one job: pushing it again replaces it
        delay=seconds,
        ttr=TTR_S,
        tags=[f"order:{order}"],  # what cancel() asks for
        retry=["10s", "1m", "10m"],  # after failures; then it is buried
    )


def paid(order: str) -> None:
    print("cancelled", queue.cancel(f"order:{order}"))


def work(jobs: float) -> None:
    while jobs:
        try:
            job = queue.pop("order-close")
        except (TransportError, Unavailable, TooMany) as error:
            print(error, file=sys.stderr)
            time.sleep(1)  # the server is being restarted
            continue
        if job:  # None: nothing was due for three minutes
            handle(job)
            jobs -= 1


def handle(job: ReservedJob) -> None:
    deadline = time.monotonic() + TTR_S
    try:
        message, is_done = close_order(json.loads(job.body)["order"]), True
    except Exception as error:
        message, is_done = str(error) or repr(error), False
    while True:
        try:
            if is_done:
                queue.finish(job, message=message)
            else:
                # the schedule says when it is delivered again; without one, in ten seconds
                queue.release(job, message=message, fallback=10)
        except (TransportError, Unavailable, TooMany) as error:
            print(error, file=sys.stderr)
            time.sleep(1)  # too busy, or nobody knows whether it was done
            if time.monotonic() < deadline:
                continue
        except QueueError as error:
            message = str(error)  # ended meanwhile; or we were too slow, another worker has it
        break
    print(f"{job.id}: {message}", flush=True)


def close_order(order: str) -> str:
    """Yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'. Twice does no harm."""
    if not order.isdigit():
        raise LookupError(f"no order {order}")
    return f"closed order {order}"


match sys.argv[1:]:
    case ["place", order, seconds]:
        place(order, float(seconds))
    case ["paid", order]:
        paid(order)
    case ["work", *jobs]:
        work(int(jobs[0]) if jobs else float("inf"))
    case _:
        sys.exit(__doc__)
