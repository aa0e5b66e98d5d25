"""Jobs as clients see them: the fields in the original's order, then ours; times in seconds."""

from delayqueue.job import JobView, Reserved


def seconds(ms: int | None) -> float | None:
    """Unix milliseconds as unix seconds."""
    return None if ms is None else ms / 1000


def reserved(job: Reserved) -> dict[str, object]:
    """A job as /pop answers it."""
    return {
        "topic": job.topic,
        "id": job.id,
        "body": job.body,
        "attempt": job.attempt,
        "receipt": job.receipt,
        "due": job.due_ms / 1000,
    }


def full(job: JobView | None) -> dict[str, object] | None:
    """A job as /get answers it; `delay` is the due time in whole unix seconds, as in the original."""
    if job is None:
        return None
    return {
        "topic": job.topic,
        "id": job.id,
        "delay": job.due_ms // 1000,
        "ttr": job.ttr_ms // 1000,
        "body": job.body,
        "state": job.state.value,
        "attempt": job.attempt,
        "tags": job.tags,
        "message": job.message,
        "created": seconds(job.created_ms),
        "due": seconds(job.due_ms),
        "started": seconds(job.started_ms),
        "ended": seconds(job.ended_ms),
        "attempts": [
            {
                "attempt": attempt.attempt,
                "started": seconds(attempt.started_ms),
                "ended": seconds(attempt.ended_ms),
                "message": attempt.message,
            }
            for attempt in job.attempts
        ],
    }
