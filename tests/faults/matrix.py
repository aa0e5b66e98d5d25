"""The matrix of a run as a table, and its place in docs/reliability.md."""

from __future__ import annotations

import platform
import re
import time
from typing import TYPE_CHECKING, Final

from tests.processes import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tests.faults.rows import Outcome, Row

DOCUMENT: Final = REPOSITORY / "docs" / "reliability.md"
BEGIN: Final = "<!-- matrix: written by `make faults` -->"
END: Final = "<!-- end of the matrix -->"
HEAD: Final = (
    "| # | fault | passes when | result | figures | seed |\n| --- | --- | --- | --- | --- | --- |"
)


def table(rows: Iterable[Row], outcomes: Sequence[Outcome]) -> str:
    """Markdown: one line a row, also for those that were not run, with the reason."""
    found = {outcome.row.number: outcome for outcome in outcomes}
    lines = [HEAD]
    for row in rows:
        result, figures, seed = _cells(row, found.get(row.number))
        lines.append(
            f"| {row.number} | {row.fault} | {row.passes} | {result} | {figures} | {seed} |"
        )
    return "\n".join(lines)


def _cells(row: Row, outcome: Outcome | None) -> tuple[str, str, str]:
    if outcome is None or outcome.not_run:
        reason = row.not_run or (outcome.not_run if outcome else "left out of this run")
        return "**not run**", reason, ""
    figures = [f"{name} {value}" for name, value in outcome.figures.items()]
    if row.not_run:
        figures.append(row.not_run)
    if outcome.failure:
        first_line = outcome.failure.splitlines()[0].replace("|", "\\|")
        return "**FAILED**", first_line, str(outcome.seed)
    return "passed", "; ".join(figures), str(outcome.seed)


def write(path: Path, rows: Iterable[Row], outcomes: Sequence[Outcome]) -> None:
    """Put the matrix between the two markers. Raises ValueError where they are not there."""
    text = path.read_text(encoding="utf-8")
    between = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    if not between.search(text):
        raise ValueError(f"{path}: has no lines {BEGIN} and {END}")
    took_min = round(sum(outcome.took_s for outcome in outcomes) / 60)
    when = time.strftime("%Y-%m-%d", time.gmtime())
    head = f"Run on {when} in {took_min} minutes, {platform.system()}, Python {platform.python_version()}."
    block = f"{BEGIN}\n{head}\n\n{table(rows, outcomes)}\n{END}"
    path.write_text(between.sub(lambda _: block, text), encoding="utf-8")
