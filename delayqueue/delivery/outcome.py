"""What became of one call of a subscriber."""

from typing import NamedTuple


class Outcome(NamedTuple):
    """`message` says what the other side said. `gone`: it wants no more calls. `retry_after_ms`: none before that.

    `error` is what a Python handler raised, `status` the HTTP status of a webhook's answer, 0 where none came.
    """

    succeeded: bool
    message: str
    retry_after_ms: int = 0
    gone: bool = False
    error: BaseException | None = None
    status: int = 0
