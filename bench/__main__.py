"""python -m bench: see bench/README.md."""

import argparse
import contextlib
import json
import signal
import sys
from dataclasses import replace
from pathlib import Path

from bench import cliffs, footprint, groups, rates, soak, timing
from bench.measure import Measure, Scale
from bench.processes import BenchError, raise_file_limit
from bench.report import Findings, as_json, table
from bench.target import Target, parse_target

MEASURES = {
    measure.name: measure
    for module in (rates, timing, footprint, groups, cliffs, soak)
    for measure in module.MEASURES
}


def main() -> int:
    """Measure, print the table; exit code 1 if a measure failed."""
    arguments = _parser().parse_args()
    raise_file_limit()
    # what we started is ended by the `with` blocks on the way out
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: terminated"))
    try:
        findings = measure_all(_targets(arguments), _measures(arguments), _scale(arguments))
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(table(findings))
    if arguments.json:
        arguments.json.write_text(json.dumps(as_json(findings), indent=1) + "\n")
    return 1 if findings.failures else 0


def _parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {measure.name:12}{measure.help}" for measure in MEASURES.values())
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures delay queue servers, several in turn.",
        epilog=f"measures:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "measures", nargs="*", metavar="MEASURE", help="default: all but groups, cliffs and soak"
    )
    parser.add_argument(
        "--target",
        action="append",
        metavar="NAME=ADDRESS",
        help="self[:key=value,...] for our server, or the path of ouqiang/delay-queue or a fork of it, each started "
        "here; default: ours=self; ratios are to the first",
    )
    parser.add_argument("--quick", action="store_true", help="rough figures in little time")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of the cheap measures")
    parser.add_argument(
        "--sleeping", metavar="N,N,...", help="levels of growth, e.g. 10000,10000000"
    )
    parser.add_argument("--minutes", type=float, metavar="N", help="of soak; default: 30")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    return parser


def _targets(arguments: argparse.Namespace) -> list[Target]:
    return [parse_target(text) for text in arguments.target or ["ours=self"]]


def _measures(arguments: argparse.Namespace) -> list[Measure]:
    names = arguments.measures or [name for name in MEASURES if MEASURES[name].by_default]
    unknown = sorted(set(names) - set(MEASURES))
    if unknown:
        raise BenchError(f"no measure {', '.join(unknown)}; there are {', '.join(MEASURES)}")
    return [MEASURES[name] for name in names]


def _scale(arguments: argparse.Namespace) -> Scale:
    scale = Scale().quick() if arguments.quick else Scale()
    if arguments.rounds:
        scale = replace(scale, rounds=arguments.rounds)
    if arguments.minutes:
        scale = replace(scale, soak_minutes=arguments.minutes)
    if arguments.sleeping:
        levels = tuple(int(level) for level in arguments.sleeping.split(","))
        scale = replace(scale, sleeping=levels)
    return scale


def measure_all(targets: list[Target], measures: list[Measure], scale: Scale) -> Findings:
    """Each measure on all targets; rounds interleaved, so that noise hits all alike."""
    findings = Findings([target.name for target in targets])
    for measure in measures:
        _measure_in_turn(measure, targets, scale, findings)
    return findings


def _measure_in_turn(
    measure: Measure, targets: list[Target], scale: Scale, findings: Findings
) -> None:
    with contextlib.ExitStack() as stack:
        waiting = [(target.name, stack.enter_context(target.running())) for target in targets]
        for _ in range(scale.rounds if measure.repeated else 1):
            for name, server in list(waiting):
                print(f"{measure.name}: {name}", file=sys.stderr, flush=True)
                try:
                    findings.add(measure.name, name, measure.run(server, scale))
                except BenchError as error:
                    findings.fail(measure.name, name, str(error))
                    waiting.remove((name, server))


if __name__ == "__main__":
    sys.exit(main())
