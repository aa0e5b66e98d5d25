"""The matrix as a table, and its place in docs/reliability.md: a row that was not run again keeps its line."""

from __future__ import annotations

import re
import subprocess
import time
from typing import TYPE_CHECKING, Final

from tests.processes import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tests.faults.rows import Outcome, Row

DOCUMENT: Final = REPOSITORY / "docs" / "reliability.md"
BEGIN: Final = "<!-- matrix: written by `make faults` -->"
END: Final = "<!-- end of the matrix -->"
HEAD: Final = (
    "| # | fault | passes when | result | figures | seed | run |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)
BETWEEN: Final = re.compile(f"{re.escape(BEGIN)}(.*){re.escape(END)}", re.DOTALL)


def table(
    rows: Iterable[Row], outcomes: Sequence[Outcome], run: str, known: Mapping[int, str]
) -> str:
    """Markdown: one line a row, also for those that were not run, with the reason.

    `run` says which run these outcomes are of; `known` has the lines of former ones by their rows' numbers.
    """
    found = {outcome.row.number: outcome for outcome in outcomes}
    lines = [HEAD]
    for row in rows:
        outcome = found.get(row.number)
        if outcome or row.run is None or row.number not in known:
            cells = (str(row.number), row.fault, row.passes, *_cells(row, outcome, run))
            lines.append(f"| {' | '.join(cells)} |")
        else:
            lines.append(known[row.number])
    return "\n".join(lines)


def _cells(row: Row, outcome: Outcome | None, run: str) -> tuple[str, str, str, str]:
    if outcome is None or outcome.not_run:
        reason = row.not_run or (outcome.not_run if outcome else "left out of this run")
        return "**not run**", reason, "", ""
    figures = [f"{name} {value}" for name, value in outcome.figures.items()]
    if row.not_run:
        figures.append(row.not_run)
    if outcome.failure:
        first_line = outcome.failure.splitlines()[0].replace("|", "\\|")
        return "**FAILED**", first_line, str(outcome.seed), run
    return "passed", "; ".join(figures), str(outcome.seed), run


def this_run() -> str:
    """Day and commit, with a + where the work tree has changes."""
    describe = ["git", "describe", "--always", "--dirty=+", "--abbrev=7", "--exclude=*"]
    found = subprocess.run(describe, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return f"{time.strftime('%Y-%m-%d', time.gmtime())} {found.stdout.strip()}".strip()


def write(path: Path, rows: Iterable[Row], outcomes: Sequence[Outcome], run: str) -> None:
    """Put the outcomes between the two markers. Raises ValueError where they are not there."""
    text = path.read_text(encoding="utf-8")
    between = BETWEEN.search(text)
    if not between:
        raise ValueError(f"{path}: has no lines {BEGIN} and {END}")
    known = {
        int(line.split(" ", 2)[1]): line
        for line in between[1].splitlines()
        if re.match(r"\| \d+ \|", line)
    }
    block = f"{BEGIN}\n{table(rows, outcomes, run, known)}\n{END}"
    path.write_text(BETWEEN.sub(lambda _: block, text), encoding="utf-8")
