"""A call as a pipeline takes it: any command, and the future of its answer."""

import asyncio
import time
from typing import Any, Final

import hiredis


class Call(asyncio.Future[Any]):
    """If it is cancelled before it is sent, it is not sent."""

    def __init__(self, *words: Any) -> None:
        super().__init__()
        self.packed: Final[bytes] = hiredis.pack_command(words)
        self.made_s: Final = time.monotonic()

    @property
    def waiter(self) -> asyncio.Future[Any] | None:
        return self

    def answered(self, answer: Any) -> None:
        self.set_result(answer)

    def failed(self, error: Exception) -> None:
        self.set_exception(error)
