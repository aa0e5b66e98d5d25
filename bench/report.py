"""Medians, ratios, the table and the JSON."""

import os
import platform
import shlex
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bench.measure import Figure, Figures

Row = tuple[str, ...]


@dataclass(slots=True)
class Findings:
    """All rounds of all measures: measure -> target -> outcomes, and why some are missing.

    `versions`: of the targets, if they are of several kinds. `left_out`: why a target is not there at all.
    """

    targets: list[str]
    outcomes: dict[str, dict[str, list[Figures]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(self, measure: str, target: str, outcome: Figures) -> None:
        """Record one round."""
        self.outcomes.setdefault(measure, {}).setdefault(target, []).append(outcome)

    def fail(self, measure: str, target: str, reason: str) -> None:
        """Record that a measure was not possible."""
        self.failures.append(f"{measure}: {target}: {reason}")

    def leave_out(self, target: str, reason: str) -> None:
        """Record that there is no such target here."""
        self.targets.remove(target)
        self.left_out[target] = reason


def table(findings: Findings, *, ratios: bool = True) -> str:
    """Medians of all targets side by side; with the ratio of each to the first."""
    told = [f"{name}: {version}" for name, version in findings.versions.items()]
    told += [f"{name}: left out: {reason}" for name, reason in findings.left_out.items()]
    told += findings.failures
    if not findings.targets:
        return "\n".join(told)
    first, *others = findings.targets
    head = ("measure", "figure", "unit", first)
    rows = [head + tuple(cell for name in others for cell in (name, f"/ {first}")[: 1 + ratios])]
    for measure, by_target in findings.outcomes.items():
        rows += _rows(measure, by_target, findings.targets, ratios=ratios)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [_line(row, widths) for row in rows]
    rule = f"| {' | '.join('-' * width for width in widths)} |"
    return "\n".join([lines[0], rule, *lines[1:], *told])


def _rows(
    measure: str, by_target: dict[str, list[Figures]], targets: list[str], *, ratios: bool
) -> Iterator[Row]:
    shown: dict[str, Figure] = {}
    for rounds in by_target.values():
        shown |= rounds[0]
    for name, figure in shown.items():
        base, *others = (_median(by_target.get(target, []), name) for target in targets)
        cells = [_number(base)]
        for value in others:
            cells += [_number(value), _ratio(value, base)][: 1 + ratios]
        better = " ↑" if figure.more_is_better else ""
        yield (measure, name, figure.unit + better, *cells)


def _median(rounds: list[Figures], name: str) -> float | None:
    values = [figures[name].value for figures in rounds if name in figures]
    return statistics.median(values) if values else None


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.3g}"


def _ratio(value: float | None, base: float | None) -> str:
    return "-" if value is None or not base else f"{value / base:.3g}"


def _line(row: Row, widths: list[int]) -> str:
    texts = [text.ljust(width) for text, width in zip(row[:3], widths[:3], strict=True)]
    numbers = [text.rjust(width) for text, width in zip(row[3:], widths[3:], strict=True)]
    return f"| {' | '.join(texts + numbers)} |"


def as_json(findings: Findings) -> dict[str, Any]:
    """Everything, with each round's value, as plain data."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(["python", *sys.orig_argv[1:]]),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "targets": findings.targets,
        "versions": findings.versions,
        "left_out": findings.left_out,
        "measures": {
            measure: {target: _plain(rounds) for target, rounds in by_target.items()}
            for measure, by_target in findings.outcomes.items()
        },
        "failures": findings.failures,
    }


def _plain(rounds: list[Figures]) -> dict[str, Any]:
    return {
        name: {
            "unit": figure.unit,
            "median": _median(rounds, name),
            "rounds": [figures[name].value for figures in rounds],
        }
        for name, figure in rounds[0].items()
    }
