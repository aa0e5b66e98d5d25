"""The matrix as a table, and its place in docs/faults.md: a row that was not run keeps its line.

The table of the Chinese page is made from the English one, with the rows' own Chinese texts.
"""

import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from faults.row import Outcome, Row
from tests.processes import REPOSITORY

DOCUMENT: Final = REPOSITORY / "docs" / "faults.md"
CHINESE: Final = DOCUMENT.with_name("faults.zh-CN.md")
BEGIN: Final = "<!-- matrix: written by `make faults` -->"
END: Final = "<!-- end of the matrix -->"
HEAD: Final = (
    "| # | fault | passes when | result | figures | seed | run |\n"
    "| --- | --- | --- | --- | --- | --- | --- |"
)
CHINESE_HEAD: Final = (
    "各项数据和种子在[英文页的表](faults.md#every-row)里。\n\n"
    "| # | 故障 | 通过的条件 | 结果 | 运行 |\n"
    "| --- | --- | --- | --- | --- |"
)
RESULTS_ZH: Final = {"passed": "通过", "**FAILED**": "**未通过**", "**not run**": "**没有运行**"}
BETWEEN: Final = re.compile(f"{re.escape(BEGIN)}(.*){re.escape(END)}", re.DOTALL)


def table(
    rows: Iterable[Row], outcomes: Sequence[Outcome], run: str, known: Mapping[int, str]
) -> str:
    """Markdown: one line per row; rows that were not run have the reason.

    `run` names the run of these outcomes; `known` has the lines of earlier runs by their rows' numbers.
    """
    found = {outcome.row.number: outcome for outcome in outcomes}
    lines = [HEAD]
    for row in rows:
        outcome = found.get(row.number)
        if outcome or row.number not in known:
            cells = (str(row.number), row.fault, row.passes, *_cells(row, outcome, run))
            lines.append(f"| {' | '.join(cells)} |")
        else:
            lines.append(known[row.number])
    return "\n".join(lines)


def _cells(row: Row, outcome: Outcome | None, run: str) -> tuple[str, str, str, str]:
    if outcome is None or outcome.not_run:
        return "**not run**", outcome.not_run if outcome else "left out of this run", "", ""
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
    """Put the outcomes between the two markers. Raises ValueError if these are missing."""
    _put(path, table(rows, outcomes, run, lines_of(path)))


def write_chinese(path: Path, rows: Iterable[Row], english: Path = DOCUMENT) -> None:
    """Put the table of the English page between the markers of the Chinese one."""
    _put(path, chinese(rows, lines_of(english)))


def chinese(rows: Iterable[Row], known: Mapping[int, str]) -> str:
    """The lines of the English page, without their figures."""
    lines = [CHINESE_HEAD]
    for row in rows:
        *_, result, _, _, run = known[row.number].removesuffix(" |").split(" | ")
        cells = (str(row.number), row.fault_zh, row.passes_zh, RESULTS_ZH[result], run)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def lines_of(path: Path) -> dict[int, str]:
    """The lines that a page has, by their rows' numbers."""
    return {
        int(line.split(" ", 2)[1]): line
        for line in _between(path).splitlines()
        if re.match(r"\| \d+ \|", line)
    }


def _put(path: Path, lines: str) -> None:
    between = _between(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(f"{BEGIN}{between}{END}", f"{BEGIN}\n{lines}\n{END}"), "utf-8")


def _between(path: Path) -> str:
    found = BETWEEN.search(path.read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f"{path}: has no lines {BEGIN} and {END}")
    return found[1]
