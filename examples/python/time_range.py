"""A queue that is read by time range. Replaces a sorted set: ZADD, ZRANGEBYSCORE, and its race with ZREM.

python time_range.py add ID WHEN TEXT   ZADD
python time_range.py look FROM TO       ZRANGEBYSCORE: takes nothing
python time_range.py take FROM TO       ZRANGEBYSCORE and ZREM in one: each job goes to one caller only
python time_range.py drop ID            ZREM

Times are seconds from now: -60 is a minute ago. The queue is at $DELAYQUEUE_URL.
"""

import sys
import time

from delay_queue import queue

TOPIC = "reminder"


def look(start: float, end: float) -> None:
    cursor = None
    while cursor != "":  # page by page
        page = queue("list", topic=TOPIC, start=start, end=end, cursor=cursor)
        for job in page["jobs"]:
            print(f"{job['id']}: {job['body']}")
        cursor = page["cursor"]


def take(start: float, end: float) -> None:
    while jobs := queue("take", topic=TOPIC, start=start, end=end, count=100):
        for job in jobs:
            print(f"{job['id']}: {job['body']}")


now = time.time()
match sys.argv[1:]:
    case ["add", job_id, when, text]:
        queue("push", topic=TOPIC, id=job_id, due=now + float(when), ttr=60, body=text)
    case ["look", start, end]:
        look(now + float(start), now + float(end))
    case ["take", start, end]:
        take(now + float(start), now + float(end))
    case ["drop", job_id]:
        queue("delete", id=job_id)
    case _:
        sys.exit(__doc__)
