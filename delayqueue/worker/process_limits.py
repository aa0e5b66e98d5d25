"""When a worker's process ends by itself, to be replaced: after a number of jobs, or when it holds too much memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from delayqueue.worker.figures import WorkerFigures

STATM: Final = Path("/proc/self/statm")
MIB: Final = 2**20


class ProcessLimits(NamedTuple):
    """The limits of a process; None = no limit."""

    max_jobs: int | None = None
    max_memory_mib: int | None = None

    def reached(self, figures: WorkerFigures) -> str:
        """The limit that is reached; "" = none."""
        if self.max_jobs is not None and figures.jobs >= self.max_jobs:
            return f"it has done {figures.jobs}"
        # checked after a job: a process too large from its start would be replaced again and again, and do none
        if self.max_memory_mib is not None and figures.jobs:
            memory_mib = _memory_mib()
            if memory_mib >= self.max_memory_mib:
                return f"it holds {memory_mib} MiB"
        return ""


def _memory_mib() -> int:
    """The memory that the process holds now; without Linux' /proc, the most that it ever held; 0 = unknown."""
    if STATM.exists():
        return int(STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") // MIB
    try:
        import resource  # noqa: PLC0415  # Windows has none
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // MIB  # macOS counts bytes
