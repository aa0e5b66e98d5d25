"""Tries all rows in full and writes the matrix: `make faults`, or `python -m faults --rows 2,13 --seed 7`."""

import argparse
import sys
import tempfile
from pathlib import Path

from faults.matrix import CHINESE, DOCUMENT, this_run, write, write_chinese
from faults.row import run
from faults.rows import ROWS


def main() -> int:
    """Exit status 1 if a row failed. Rows that ran in full are written to the pages."""
    asked = _arguments()
    wanted = {int(number) for number in asked.rows.split(",")} if asked.rows else set()
    rows = [row for row in ROWS if not wanted or row.number in wanted]
    began = this_run()
    home = Path(tempfile.mkdtemp(prefix="faults-"))
    outcomes = []
    for row in rows:
        if asked.small and row.small is None:
            _say(f"row {row.number}: has no small size")
            continue
        outcome = run(
            row,
            home,
            small=asked.small,
            seed=asked.seed,
            minutes=asked.minutes,
            kills=asked.kills,
        )
        outcomes.append(outcome)
        result = outcome.failure or outcome.not_run or f"passed, {outcome.figures}"
        _say(f"row {row}: {result} (seed {outcome.seed}, {outcome.took_s} s)")
        if outcome.failure:
            _say(outcome.logs)
        if not asked.small:
            write(DOCUMENT, outcomes, began)
            write_chinese(CHINESE, DOCUMENT)
    _say(f"histories: {home}")
    return int(any(outcome.failure for outcome in outcomes))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--rows", default="", metavar="1,2", help="only these; default: all")
    parser.add_argument("--small", action="store_true", help="in the sizes of the tests")
    parser.add_argument("--minutes", type=int, help="of row 27; default: 12")
    parser.add_argument("--kills", type=int, help="of rows that kill so many times")
    parser.add_argument("--seed", type=int, help="default: a random one for each row")
    return parser.parse_args()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
