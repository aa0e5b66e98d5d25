"""The clock of one of the store's servers, as far as its answers have told it.

A call can reach the store when its client has long been told that nobody knows: the system sends its bytes again once
a broken link has healed, and a frozen store or a proxy passes on what it took in before. Done then, it would undo what
was acknowledged since. So each call says until when it may be done, in the clock of the server that does it, which
refuses it after that (`begin` in _call.lua).
"""

import logging
import math
import re
from typing import Final

from delayqueue.store.servers.pipeline import ANSWER_S

log = logging.getLogger(__name__)

REFUSAL: Final = re.compile(r"LATE (\d+)")  # the start of the scripts' error, with the store's time
# What is known of a clock is wrong by what an answer took, so a smaller change may be none.
JUMP_MS: Final = ANSWER_S * 1000


def told_by(refusal: Exception) -> int | None:
    """The store's time in ms, if it refused a call because the call's time was over; None for any other error."""
    found = REFUSAL.match(str(refusal))
    return int(found[1]) if found else None


class Clock:
    """How far a server's clock is ahead of the event loop's, at most.

    Each answer tells it: the server read its clock after the call was made, so it cannot be further ahead than that.
    It may be less far ahead, by what the call took. So a call that is on time is never refused, and one that is late is
    refused at the latest that much later.
    """

    def __init__(self) -> None:
        self._ahead_ms: float | None = None
        self.jumps = 0

    def heard(self, now_ms: int, asked_s: float) -> None:
        """The answer to a call that was made at the loop's time `asked_s` has the server's time."""
        before_ms = self._ahead_ms
        self._ahead_ms = now_ms - asked_s * 1000
        if before_ms is not None and abs(self._ahead_ms - before_ms) > JUMP_MS:
            jump_s = (self._ahead_ms - before_ms) / 1000
            self.jumps += 1
            log.warning("the store's clock has jumped by %+.1f s", jump_s)

    def at_ms(self, loop_s: float) -> int:
        """The server's time at a time of the loop, at the latest; long ago if nothing was heard of it."""
        return 0 if self._ahead_ms is None else math.ceil(loop_s * 1000 + self._ahead_ms)
