"""Closes orders that are not paid in time, with greenstalk.

python close_orders.py place ORDER SECONDS   an order, closed after SECONDS unless it is paid; prints the id of the job
python close_orders.py paid ID               it is paid: cancel the job
python close_orders.py work [JOBS]           a worker for JOBS jobs, or forever; run as many as you like
"""

import json
import sys

import greenstalk

TUBE = "orders"  # the topic
PRIORITY = 1024  # jobs with a smaller number come before it
TTR_S = 60  # a worker that is silent for a minute is dead, another one gets the job
RETRIES_S = (10, 60, 600)  # after failures; then it is buried


def place(queue: greenstalk.Client[str], order: str, delay_s: int) -> None:
    body = json.dumps({"order": order})
    print(f"job {queue.put(body, PRIORITY, delay_s, TTR_S)}")


def work(queue: greenstalk.Client[str], jobs: float) -> None:
    while jobs > 0:
        handle(queue, queue.reserve())
        jobs -= 1


def handle(queue: greenstalk.Client[str], job: greenstalk.Job[str]) -> None:
    try:
        print(close_order(json.loads(job.body)["order"]))
    except Exception as error:  # whatever it is
        print(error)
        attempt = queue.stats_job(job)["reserves"]
        if attempt <= len(RETRIES_S):
            queue.release(job, PRIORITY, RETRIES_S[attempt - 1])
        else:
            queue.bury(job)
    else:
        queue.delete(job)


def close_order(order: str) -> str:
    """Yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'. Twice does no harm."""
    if not order.isdigit():
        raise LookupError(f"no order {order}")
    return f"closed order {order}"


with greenstalk.Client(("127.0.0.1", 11300), use=TUBE, watch=TUBE) as client:
    match sys.argv[1:]:
        case ["place", order, seconds]:
            place(client, order, int(seconds))
        case ["paid", job_id]:
            client.delete(int(job_id))
        case ["work", *jobs]:
            work(client, int(jobs[0]) if jobs else float("inf"))
        case _:
            sys.exit(__doc__)
