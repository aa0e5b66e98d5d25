"""Workers of one server exchange their figures, so that any of them can show all."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Final

from delayqueue.metrics import TICK_AGE, Snapshot

log = logging.getLogger(__name__)

ANSWER_S: Final = 2.0  # of a worker that takes longer, only the age of its pulse is known


class Peers:
    """The workers that have a socket in `folder`, including this one by its number; None = there is no other.

    `pulses` holds for each worker the monotonic time when it was last seen to work, 0 before it serves.
    """

    def __init__(
        self,
        folder: Path | None,
        number: int,
        read: Callable[[], Snapshot],
        pulses: Sequence[float] = (),
    ) -> None:
        self._folder = folder
        self._own = str(number)
        self._read = read
        self._pulses = pulses

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Answer the others while the block runs.

        If that is impossible, the server works on, and figures are missing.
        """
        if self._folder is None:
            yield
            return
        path = self._folder / self._own
        try:
            path.unlink(missing_ok=True)  # of a dead worker with this number
            server = await asyncio.start_unix_server(self._answer, path)
        except OSError as error:
            log.warning("worker %s cannot share its figures: %s; set TMPDIR", self._own, error)
            yield
            return
        async with server:
            yield

    async def snapshots(self) -> dict[str, Snapshot]:
        """The figures of all workers, by number; of one that does not answer, how long its timer has not ticked."""
        found = {self._own: self._read()}
        others = [path for path in _sockets(self._folder) if path.name != self._own]
        answers = await asyncio.gather(*map(_ask, others), return_exceptions=True)
        for path, answer in zip(others, answers, strict=True):
            if isinstance(answer, BaseException):
                log.warning("worker %s does not send its figures: %r", path.name, answer)
                found |= self._of_silent(path.name)
            else:
                found[path.name] = answer
        return found

    def _of_silent(self, name: str) -> dict[str, Snapshot]:
        """A worker that is stuck cannot tell so: without its figure, no alert would ring."""
        number = int(name)
        pulse = self._pulses[number - 1] if number <= len(self._pulses) else 0
        return {name: {TICK_AGE.name: [[[], monotonic() - pulse]]}} if pulse else {}

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps(self._read()).encode())
        writer.close()


def _sockets(folder: Path | None) -> list[Path]:
    return sorted(folder.iterdir()) if folder else []


async def _ask(path: Path) -> Snapshot:
    async with asyncio.timeout(ANSWER_S):
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            answer: Snapshot = json.loads(await reader.read())
        finally:
            writer.close()
        return answer
