"""How many jobs a second: push, pop, the whole cycle."""

from bench.load import LARGE_BATCH, fill, run
from bench.measure import (
    SLEEP_FROM_S,
    SLEEP_TO_S,
    Figure,
    Measure,
    Outcome,
    Scale,
    new_topic,
    per_second,
)
from bench.processes import wait_until
from bench.target import Server

BODY_BYTES = 40
# the smallest delay that ouqiang/delay-queue takes
SHORTEST_DELAY_S = 1
READY_LIMIT_S = 120.0
# wrk needs a moment to stop, and an empty list would be measured as waiting
POPPED_SHARE = 0.75


def _push(server: Server, scale: Scale, connections: int, batch: int = 1) -> Outcome:
    tally = run(
        "push.lua",
        server,
        new_topic(),
        connections=connections,
        seconds=scale.seconds,
        batch=batch,
        body_bytes=BODY_BYTES,
        delay_from=SLEEP_FROM_S,
        delay_to=SLEEP_TO_S,
    )
    answer = Figure(tally.answer_ms_p99, "ms")
    return Outcome({"jobs": per_second(tally.rate), "answer p99": answer})


def push(server: Server, scale: Scale) -> Outcome:
    """One job a request, 32 connections."""
    return _push(server, scale, connections=32)


def push128(server: Server, scale: Scale) -> Outcome:
    """One job a request, 128 connections."""
    return _push(server, scale, connections=128)


def batch(server: Server, scale: Scale) -> Outcome:
    """Arrays of 100 jobs, 8 connections; one by one where the server knows no arrays."""
    return _push(server, scale, connections=8, batch=LARGE_BATCH)


def pop(server: Server, scale: Scale) -> Outcome:
    """Ready jobs, one a request, 32 connections; the list is never empty."""
    topic = new_topic()
    filled = fill(
        server,
        topic,
        scale.pop_jobs,
        body_bytes=BODY_BYTES,
        delay_from=SHORTEST_DELAY_S,
        delay_to=SHORTEST_DELAY_S,
    )
    wait_until(lambda: server.ready(topic) >= filled.jobs, "jobs to pop", READY_LIMIT_S)
    count = filled.jobs * POPPED_SHARE
    tally = run("pop.lua", server, topic, connections=32, seconds=60, count=count)
    answer = Figure(tally.answer_ms_p99, "ms")
    return Outcome({"jobs": per_second(tally.rate), "answer p99": answer})


def cycle(server: Server, scale: Scale) -> Outcome:
    """Push, pop and finish in balance, 32 connections; counted when finished."""
    tally = run(
        "cycle.lua",
        server,
        new_topic(),
        connections=32,
        seconds=2 * scale.seconds,
        depth=scale.cycle_depth,
        body_bytes=BODY_BYTES,
    )
    return Outcome({"jobs": per_second(tally.rate)})


MEASURES = (
    Measure("push", "push, one job a request, 32 connections", push),
    Measure("push128", "push, one job a request, 128 connections", push128),
    Measure("batch", "push in batches of 100 (one by one where there are none)", batch),
    Measure("pop", "pop ready jobs, 32 connections", pop),
    Measure("cycle", "push, pop, finish in balance, 32 connections", cycle),
)
