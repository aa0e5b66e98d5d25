"""A process of the server, and what it shares with the others: the port, its pulse, its figures."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, MutableSequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from delayqueue.config.config import Config
from delayqueue.metrics import TICK_AGE, Snapshot

log = logging.getLogger(__name__)

# of a process that takes longer to send its figures, only the age of its pulse is known
ANSWER_S: Final = 2.0
NONE_DECLARED: Final = -1.0

Figures = Callable[[], Snapshot]


class Process(NamedTuple):
    """Which of the processes this is: the first has number 1.

    `pulses` holds for each process the monotonic time when it was last seen to work, 0 before it serves, and negative
    from its end until its replacement serves. `declared` has one number: the revision of the settings whose sections
    one of the processes declared last, NONE_DECLARED at first. In `folder` each has a socket where it tells its
    figures; None = it is the only one.
    """

    pulses: MutableSequence[float]
    declared: MutableSequence[float]
    number: int = 1
    folder: Path | None = None

    @property
    def is_replacement(self) -> bool:
        """Whether it takes the place of one that has served."""
        return self.pulses[self.number - 1] != 0

    def name(self, config: Config) -> str:
        """The name of this process among all servers of the store."""
        return f"{socket.gethostname()}:{config.bind_address.port} #{self.number}"

    def beat(self, age_s: float = 0.0) -> None:
        """Note that the process was last seen to work `age_s` ago."""
        self.pulses[self.number - 1] = time.monotonic() - age_s

    def ended(self) -> None:
        """Note that the process works no more."""
        self.pulses[self.number - 1] = -abs(self.pulses[self.number - 1])

    @asynccontextmanager
    async def sharing_figures(self, figures: Figures) -> AsyncIterator[None]:
        """Tell the others its figures while the block runs.

        If that is impossible, the server works on, and figures are missing.
        """
        if self.folder is None:
            yield
            return

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(json.dumps(figures()).encode())
            writer.close()

        path = self.folder / str(self.number)
        try:
            path.unlink(missing_ok=True)  # of a dead process with this number
            server = await asyncio.start_unix_server(answer, path)
        except OSError as error:
            log.warning("worker %d cannot share its figures: %s; set TMPDIR", self.number, error)
            yield
            return
        async with server:
            yield

    async def all_figures(self, own: Figures) -> dict[str, Snapshot]:
        """The figures of all processes, by number; of this one its `own`.

        Of one that does not answer, how long its timer has not ticked: it is stuck, and no alert would ring without.
        """
        found = {str(self.number): own()}
        if self.folder is None:
            return found
        numbers = range(1, len(self.pulses) + 1)
        others = [self.folder / str(number) for number in numbers if number != self.number]
        answers = await asyncio.gather(*map(_ask, others), return_exceptions=True)
        for path, answer in zip(others, answers, strict=True):
            if not isinstance(answer, BaseException):
                found[path.name] = answer
            elif pulse := self.pulses[int(path.name) - 1]:  # it has served
                log.warning(
                    "worker %s does not send its figures at %s: %r", path.name, path, answer
                )
                found[path.name] = {TICK_AGE.name: [[[], time.monotonic() - abs(pulse)]]}
        return found


async def _ask(path: Path) -> Snapshot:
    async with asyncio.timeout(ANSWER_S):
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            answer: Snapshot = json.loads(await reader.read())
        finally:
            writer.close()
        return answer
