"""How late: a burst of jobs due at once, and the lateness of single jobs."""

import math
import time

from bench.load import fill, loading, run
from bench.measure import Figure, Figures, Measure, Scale, new_topic, per_second
from bench.processes import BenchError, wait_until
from bench.rates import BODY_BYTES, READY_LIMIT_S
from bench.target import Server

SLOWEST_PUSH = 3_000  # jobs a second that any server takes: the burst must be in before it is due
PACE = 500  # jobs per second
LONGEST_DELAY_S = 5  # of pace.lua
LOOK_S = 0.002  # between two checks of the ready list; the resolution of a burst's time
SPARE_S = 4  # for the last jobs to arrive


def burst(server: Server, scale: Scale) -> Figures:
    """Many jobs due in the same second: how long until all are in the ready list."""
    topic = new_topic()
    due = math.ceil(time.time()) + scale.burst_jobs // SLOWEST_PUSH + 2
    filled = fill(server, topic, scale.burst_jobs, body_bytes=BODY_BYTES, due=due)
    if time.time() > due:
        raise BenchError("the burst fell due before it was pushed")
    time.sleep(due - time.time())
    wait_until(
        lambda: server.ready(topic) >= filled.jobs, "jobs of the burst", READY_LIMIT_S, LOOK_S
    )
    took_s = time.time() - due
    return {"ready after": Figure(took_s, "s"), "jobs": per_second(filled.jobs / took_s)}


def lateness(server: Server, scale: Scale) -> Figures:
    """500 jobs/s with random delays, seen by consumers in long polls."""
    topic = new_topic()
    seconds = scale.lateness_seconds
    with loading(
        "drain.lua",
        server,
        topic,
        connections=32,
        seconds=seconds + LONGEST_DELAY_S + SPARE_S,
    ) as consumers:
        pushed = run("pace.lua", server, topic, connections=16, seconds=seconds, rate=PACE)
        tally = consumers.result()
    if not tally.late_ms:
        raise BenchError("no job arrived")
    return {
        "p50": Figure(tally.late(50), "ms"),
        "p99": Figure(tally.late(99), "ms"),
        "max": Figure(tally.late(100), "ms"),
        "earliest": Figure(tally.late(0), "ms"),
        "pushed": per_second(pushed.rate),
        "missing": Figure(max(0, pushed.jobs - tally.jobs), "jobs"),
    }


MEASURES = (
    Measure("burst", "jobs due in the same second: time until all are ready", burst),
    Measure("lateness", "lateness at 500 jobs/s with random delays", lateness),
)
