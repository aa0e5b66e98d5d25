"""arq closing_arq.WorkerSettings"""

from datetime import timedelta
from zoneinfo import ZoneInfo

from arq import Retry, create_pool, cron
from arq.connections import RedisSettings
from arq.jobs import Job, JobStatus

REDIS = RedisSettings()
RETRY_S = [10, 60, 600]


async def close(ctx, order, reason):
    if not order.isdigit():
        raise LookupError(f"no order {order}")  # not tried again
    try:
        return f"closed order {order}: {reason}"
    except OSError as error:
        raise Retry(defer=RETRY_S[min(ctx["job_try"] - 1, 2)]) from error


async def report(ctx):
    print("yesterday's orders")


class WorkerSettings:
    functions = [close]
    cron_jobs = [cron(report, weekday={0, 1, 2, 3, 4}, hour=9, minute=30)]
    timezone = ZoneInfo("Asia/Shanghai")
    redis_settings = REDIS
    max_tries = 4
    keep_result = 86_400
    allow_abort_jobs = True


async def place(order):
    pool = await create_pool(REDIS)
    await pool.enqueue_job(
        "close", order, "not paid", _defer_by=timedelta(minutes=30), _job_id=f"close-{order}"
    )


async def paid(order):
    await Job(f"close-{order}", await create_pool(REDIS)).abort()


async def outcome(order):
    job = Job(f"close-{order}", await create_pool(REDIS))
    return await job.result() if await job.status() == JobStatus.complete else None
