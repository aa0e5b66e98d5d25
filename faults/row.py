"""A row of the matrix, and trying it."""

import asyncio
import random
import time
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from faults.bed import Bed, CannotRun, Figures, labelled

WITHOUT: Final = "without functions"


@dataclass(frozen=True)
class Row:
    """One kind of fault, which docs/faults.md describes.

    `small` are the sizes of tests/tools; None = only `make faults` runs it.
    """

    number: int
    run: Callable[..., Coroutine[Any, Any, Figures]]
    full: Figures = field(default_factory=dict)
    small: Figures | None = None
    not_run: str = ""  # what the scenario leaves out
    both_wrappings: bool = False  # in full, it runs again on a store without functions

    def __str__(self) -> str:
        return f"{self.number} {self.run.__name__.replace('_', ' ')}"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a row. `failure` and `not_run` are "" if it passed."""

    row: Row
    seed: int
    took_s: float
    figures: Figures
    failure: str = ""
    not_run: str = ""
    logs: str = ""


def run(
    row: Row, home: Path, *, small: bool, seed: int | None = None, **asked: int | None
) -> Outcome:
    """Try a row, in the sizes `asked` for if it has them. A failure is part of the outcome, not raised."""
    seed = random.randrange(10**6) if seed is None else seed
    since_s = time.monotonic()
    sizes = (row.small or {}) if small else row.full
    sizes = sizes | {name: size for name, size in asked.items() if size and name in sizes}
    figures: Figures = {}
    failure = not_run = logs = ""
    for functions in (True, False) if row.both_wrappings and not small else (True,):
        name = f"row-{row.number}-{seed}" + ("" if functions else "-without-functions")
        bed = Bed(home / name, seed, functions=functions)
        try:
            found = asyncio.run(row.run(bed, **sizes))
            figures |= found if functions else labelled({WITHOUT: found})
        except CannotRun as reason:
            not_run = str(reason)
        except Exception as error:
            failure = f"{'' if functions else f'{WITHOUT}: '}{_told(error)}"
            logs = f"{''.join(traceback.format_exception(error))}\n{bed.logs()}"
        finally:
            bed.close()
        if failure or not_run:
            break
    took_s = round(time.monotonic() - since_s, 1)
    return Outcome(row, seed, took_s, figures, failure, not_run, logs)


def _told(error: Exception) -> str:
    """The error, or those of a group: the tasks that failed together."""
    if isinstance(error, ExceptionGroup):
        return "; ".join(map(_told, error.exceptions))
    return f"{type(error).__name__}: {error}"
