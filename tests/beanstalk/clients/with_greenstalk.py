"""What a client can do, with greenstalk: python with_greenstalk.py HOST PORT TUBE."""

import sys
import time

import greenstalk

ADDRESS = sys.argv[1], int(sys.argv[2])
TUBE, OTHER = sys.argv[3], f"{sys.argv[3]}.other"


def client() -> greenstalk.Client[bytes]:
    return greenstalk.Client(ADDRESS, encoding=None, use=TUBE, watch=[TUBE, OTHER])


def counts(job: greenstalk.Job[bytes]) -> str:
    stats = queue.stats_job(job)
    names = ("state", "pri", "reserves", "releases", "buries", "kicks", "timeouts")
    return " ".join(f"{name} {stats[name]}" for name in names)  # type: ignore[literal-required]


queue = client()
for body, priority, delay in (
    ("late", 30, 0),
    ("soon", 10, 0),
    ("next", 20, 0),
    ("asleep", 0, 1000),
):
    queue.put(body.encode(), priority, delay, ttr=60)
tube = queue.stats_tube(TUBE)
print(f"ready {tube['current-jobs-ready']}, of them urgent {tube['current-jobs-urgent']},", end=" ")
print(f"delayed {tube['current-jobs-delayed']}")

job = queue.reserve(0)
print(job.body.decode())
queue.delete(job)
job = queue.reserve(0)
print(job.body.decode())
queue.release(job, priority=40, delay=0)
job = queue.reserve(0)
print(job.body.decode())
queue.bury(job, priority=50)

print(
    f"buried {queue.peek_buried().body.decode()}, ready {queue.peek_ready().body.decode()},",
    end=" ",
)
print(f"delayed {queue.peek_delayed().body.decode()}")
print(f"kicked {queue.kick(10)}")
job = queue.reserve(0)
print(f"{job.body.decode()}: {counts(job)}")
queue.delete(job)
job = queue.reserve(0)
queue.touch(job)
print(f"{job.body.decode()}: {counts(job)}")
queue.delete(job)
try:
    queue.delete(job)
except greenstalk.NotFoundError:
    print("deleted once")
try:
    queue.reserve(0)
except greenstalk.TimedOutError:
    print("nothing is ready")

binary = bytes(range(256)) + b"\r\n"
queue.put(binary)
job = queue.reserve(0)
print(f"{len(job.body)} bytes{' as they were' if job.body == binary else ''}")
queue.delete(job)
try:
    queue.put(b"." * 65_536)
except greenstalk.JobTooBigError:
    print("too big")

queue.put(b"of this tube", priority=5)
queue.use(OTHER)
queue.put(b"of the other tube", priority=4)
queue.use(TUBE)
for _ in range(2):
    job = queue.reserve(0)
    print(job.body.decode())
    queue.delete(job)

queue.pause_tube(TUBE, 1000)
queue.put(b"paused", delay=1)
try:
    queue.reserve(0)
except greenstalk.TimedOutError:
    print("nothing while paused")
queue.pause_tube(TUBE, 1)
job = queue.reserve(20)
print(job.body.decode())
queue.delete(job)
queue.kick(1)
job = queue.reserve(0)
print(job.body.decode())
queue.delete(job)

queue.put(b"slow", priority=60, ttr=3)
queue.reserve(0)
try:
    queue.reserve(20)
except greenstalk.DeadlineSoonError:
    print("hurry")
time.sleep(1.2)
queue.stats()  # a nudge: beanstalkd 1.12 sometimes misses that a time to run is over until its holder sends a command
other = client()
job = other.reserve(20)
print(f"{job.body.decode()}: {counts(job)}")
other.close()
job = queue.reserve(20)
print(f"{job.body.decode()}: {counts(job)}")
queue.delete(job)
