"""Comes between a store and its calls: does something before one of them, or lets them fail."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from delayqueue.errors import Unavailable
from delayqueue.store.bucket import Bucket
from delayqueue.store.call import ScriptCall
from delayqueue.store.store import Store

Send = Callable[[ScriptCall], None]
WORK: Final = set[asyncio.Task[None]]()  # asyncio keeps no task by itself


def intercept(store: Store, send: Callable[[Bucket, ScriptCall, Send], None]) -> Callable[[], None]:
    """Have each call given to `send`, with the bucket and what sends it. Returns what undoes that."""
    buckets = [store.bucket(number) for number in range(len(store.buckets.keys))]
    for bucket in buckets:

        def given(call: ScriptCall, bucket: Bucket = bucket, sends: Send = bucket.send) -> None:
            send(bucket, call, sends)

        bucket.send = given  # type: ignore[method-assign]

    def undo() -> None:
        for bucket in buckets:
            del bucket.send

    return undo


def before_send(
    store: Store, number: int, do: Callable[[], Awaitable[object]], script: str = ""
) -> None:
    """Do something else just before that call, of one script or of all (""); what it raises is the call's error."""
    calls = 0

    async def late(call: ScriptCall, sends: Send) -> None:
        try:
            await do()
        except Exception as error:
            call.end(error)
        else:
            sends(call)

    def send(_: Bucket, call: ScriptCall, sends: Send) -> None:
        nonlocal calls
        calls += script in {"", call.function.head.name}
        if calls == number and script in {"", call.function.head.name}:
            WORK.add(task := asyncio.create_task(late(call, sends)))
            task.add_done_callback(WORK.discard)
        else:
            sends(call)

    intercept(store, send)


def failing_from(store: Store, number: int, script: str) -> Callable[[], None]:
    """Let this and later calls of a script fail. Returns what repairs that."""
    calls = 0

    def send(_: Bucket, call: ScriptCall, sends: Send) -> None:
        nonlocal calls
        calls += call.function.head.name == script
        if call.function.head.name == script and calls >= number:
            call.end(Unavailable())
        else:
            sends(call)

    return intercept(store, send)
