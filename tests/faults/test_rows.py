"""The rows of the matrix that are quick enough for every test run, small. `make faults` runs all of them in full."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.faults.row import Row, run
from tests.faults.rows import ROWS

if TYPE_CHECKING:
    from pathlib import Path

QUICK = [pytest.param(row, id=f"{row.number} {row.fault}") for row in ROWS if row.small is not None]


@pytest.mark.parametrize("row", QUICK)
def test_what_is_promised_holds_under_the_fault(row: Row, tmp_path: Path) -> None:
    outcome = run(row, tmp_path, small=True)
    sys.stdout.write(f"seed {outcome.seed}: {outcome.figures}\n{outcome.logs}\n")
    if outcome.failure:
        pytest.fail(outcome.failure, pytrace=False)
    if outcome.not_run:
        pytest.skip(outcome.not_run)
