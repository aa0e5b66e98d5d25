"""Workers of one server exchange their figures, so that any of them can show all."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from delayqueue.metrics import Snapshot

log = logging.getLogger(__name__)

ANSWER_S: Final = 2.0  # a worker that takes longer is left out


class Peers:
    """The workers that have a socket in `folder`, including this one by its number; None = there is no other."""

    def __init__(self, folder: Path | None, number: int, read: Callable[[], Snapshot]) -> None:
        self._folder = folder
        self._own = str(number)
        self._read = read

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
        """The figures of all workers that answer, by number."""
        found = {self._own: self._read()}
        others = [path for path in _sockets(self._folder) if path.name != self._own]
        answers = await asyncio.gather(*map(_ask, others), return_exceptions=True)
        for path, answer in zip(others, answers, strict=True):
            if isinstance(answer, BaseException):
                log.warning("worker %s does not send its figures: %r", path.name, answer)
            else:
                found[path.name] = answer
        return found

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
