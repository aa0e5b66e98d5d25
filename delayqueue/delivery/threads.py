"""Calls that block, each in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(call: Callable[[], T], name: str) -> T:
    """What `call` returns or raises. Cancelled, it goes on unheard: nothing can stop a thread.

    Not asyncio's pool: calls that hang would keep others waiting, and the program from ending.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(settle_with: Callable[[], None]) -> None:
        if not future.done():
            settle_with()

    def work() -> None:
        try:
            result = call()
        except BaseException as error:  # SystemExit too is for the one who asked
            failure = RuntimeError("StopIteration") if isinstance(error, StopIteration) else error
            _tell(loop, settle, lambda: future.set_exception(failure))
        else:
            _tell(loop, settle, lambda: future.set_result(result))

    threading.Thread(target=work, name=name, daemon=True).start()
    return await future


def _tell(
    loop: asyncio.AbstractEventLoop,
    settle: Callable[[Callable[[], None]], None],
    settle_with: Callable[[], None],
) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(settle, settle_with)
