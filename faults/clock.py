"""A separate clock for a process, which can be wrong and jump."""

from pathlib import Path
from typing import Final

from faults.bed import CannotRun

LIBRARIES: Final = Path("/usr/lib")


class Clock:
    """The time as seen by processes that `wrapper` starts; their monotonic clocks stay right.

    Raises CannotRun if libfaketime is not installed. Redis cannot start under it (because of jemalloc), Valkey can.
    """

    def __init__(self, path: Path) -> None:
        library = next(LIBRARIES.glob("*/faketime/libfaketime.so.1"), None)
        if library is None:
            raise CannotRun("libfaketime is not installed: apt-get install faketime")
        self._path = path
        self.wrapper = [
            "env",
            f"LD_PRELOAD={library}",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
            f"FAKETIME_TIMESTAMP_FILE={path}",
            "FAKETIME_NO_CACHE=1",
        ]
        self.set(0)

    def set(self, ahead_s: int) -> None:
        """Jump in one step: libfaketime must not read half a file."""
        new = self._path.with_suffix(".new")
        new.write_text(f"{ahead_s:+}", encoding="ascii")
        new.rename(self._path)
