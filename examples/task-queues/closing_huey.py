"""huey_consumer closing_huey.huey"""

from huey import CancelExecution, RedisHuey, crontab

huey = RedisHuey("closing", utc=False)  # times of the schedule are those of the machine


@huey.task(retries=3, retry_delay=10)
def close(order, reason):
    if not order.isdigit():
        raise CancelExecution(f"no order {order}", retry=False)
    return f"closed order {order}: {reason}"


@huey.periodic_task(crontab(hour="9", minute="30", day_of_week="1-5"))
def report():
    print("yesterday's orders")


def place(order):
    close.schedule((order, "not paid"), delay=1800, id=f"close-{order}")


def paid(order):
    huey.revoke_by_id(f"close-{order}")


def outcome(order):
    return huey.result(f"close-{order}", preserve=True)
