"""How a worker describes itself. No IO."""

from typing import Final, NamedTuple

MAX_NAME_BYTES: Final = 256  # of a worker, and of its host
MAX_VERSION_BYTES: Final = 64
MAX_PID: Final = 2**32 - 1
MAX_CONCURRENCY: Final = 100_000


class WorkerIdentity(NamedTuple):
    """A program that takes jobs, as it describes itself; the name tells it from all others.

    `concurrency`: how many jobs it runs at once. "" and 0 = it does not say.
    """

    name: str
    version: str = ""
    host: str = ""
    pid: int = 0
    concurrency: int = 0
