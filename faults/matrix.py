"""The results of rows, in the table of docs/faults.md and of its Chinese twin: a row that was not run keeps its line.

A person writes what breaks, and when the row passes, into both tables.
"""

import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from faults.row import Outcome
from tests.processes import REPOSITORY

DOCUMENT: Final = REPOSITORY / "docs" / "faults.md"
CHINESE: Final = DOCUMENT.with_name("faults.zh-CN.md")
RESULTS_ZH: Final = {"passed": "通过", "**FAILED**": "**未通过**", "**not run**": "**没有运行**"}
LINE: Final = re.compile(r"^\| (\d+) \| .* \|$", re.MULTILINE)


def cells_of(page: Path) -> dict[int, list[str]]:
    """The cells of each row on a page: its number, what breaks, when it passes, and the results."""
    return {
        int(line[1]): line[0][2:-2].split(" | ") for line in LINE.finditer(page.read_text("utf-8"))
    }


def write(page: Path, outcomes: Iterable[Outcome], run: str) -> None:
    """Put the outcomes into the lines of their rows. `run` names the run."""
    _put(page, {outcome.row.number: _results(outcome, run) for outcome in outcomes})


def write_chinese(page: Path, english: Path) -> None:
    """Put the results of the English page, without their figures, into the lines of the Chinese one."""
    known = cells_of(english)
    _put(page, {number: (RESULTS_ZH[row[3]], row[-1]) for number, row in known.items()})


def _put(page: Path, results: Mapping[int, Sequence[str]]) -> None:
    def with_results(line: re.Match[str]) -> str:
        number = int(line[1])
        if number not in results:
            return line[0]
        return f"| {' | '.join([*line[0][2:].split(' | ')[:3], *results[number]])} |"

    page.write_text(LINE.sub(with_results, page.read_text("utf-8")), "utf-8")


def _results(outcome: Outcome, run: str) -> tuple[str, str, str, str]:
    if outcome.not_run:
        return "**not run**", outcome.not_run, "", ""
    figures = [f"{name} {value}" for name, value in outcome.figures.items()]
    if outcome.row.not_run:
        figures.append(outcome.row.not_run)
    if outcome.failure:
        first_line = outcome.failure.splitlines()[0].replace("|", "\\|")
        return "**FAILED**", first_line, str(outcome.seed), run
    return "passed", "; ".join(figures), str(outcome.seed), run


def this_run() -> str:
    """Day and commit, with a + where the work tree has changes."""
    describe = ["git", "describe", "--always", "--dirty=+", "--abbrev=7", "--exclude=*"]
    found = subprocess.run(describe, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return f"{time.strftime('%Y-%m-%d', time.gmtime())} {found.stdout.strip()}".strip()
