"""What `--help` prints beyond the arguments of a verb, and the messages for wrong words."""

from argparse import Action, ArgumentParser
from collections.abc import Iterable
from difflib import get_close_matches
from pkgutil import resolve_name
from textwrap import fill
from typing import Any, Final

from delayqueue.cli.subcommand import Families, Subcommand, say
from delayqueue.config.option import PREFIX, Option

COLUMNS: Final = 80
VERB_COLUMNS: Final = 21
OF_ALL: Final = ("--help", "--help-settings", "--version")
SETTING_COLUMNS: Final = 24
SETTING_MEANT: Final = "delayqueue.config.loading:meant_by_option"
STATUSES: Final = """\
exit status:
  0    done
  1    refused: the queue refused, or had nothing; check, fsck: something is
       wrong; import: jobs were set aside
  2    wrong usage: an argument or a setting; the server cannot start
  3    no server can be reached, or its store does not answer
  130  ended by Ctrl-C"""


def table_of(families: Families) -> str:
    """The table of verbs, and the exit status."""
    tables = [
        "\n".join([f"{family}:", *(_row(verb.name, verb.help, VERB_COLUMNS) for verb in verbs)])
        for family, verbs in families.items()
    ]
    more = "delay-queue help VERB tells more about a verb."
    return "\n\n".join([*tables, STATUSES, more])


class HelpSettings(Action):
    """The option `--help-settings`: prints every setting, and ends the program."""

    def __call__(self, parser: ArgumentParser, *_: Any) -> None:
        """Print every setting."""
        say(_settings())
        parser.exit()


class ShowBuild(Action):
    """The option `--version`: prints which build this is, and ends the program."""

    def __call__(self, parser: ArgumentParser, *_: Any) -> None:
        """Print the build."""
        say(resolve_name("delayqueue.config.build:build")())
        parser.exit()


def _settings() -> str:
    options = resolve_name("delayqueue.config.config:OPTIONS")
    head = f"settings, in the file or as variables ({PREFIX}REDIS_HOST for redis.host) [default]:"
    return "\n".join([fill(head, COLUMNS), *map(_setting, options.values())])


def _setting(option: Option) -> str:
    default = f" [{' '.join((option.default, option.unit)).strip()}]" if option.default else ""
    return _row(option.key, f"{option.help}{default}", SETTING_COLUMNS)


def _row(name: str, text: str, columns: int) -> str:
    first = f"  {name:<{columns - 3}} "
    return fill(
        f"{first}{text}",
        COLUMNS,
        subsequent_indent=" " * columns,
        break_on_hyphens=False,
        break_long_words=False,
    )


def no_verb(word: str, verbs: Iterable[str]) -> str:
    """The message for an unknown verb, with the one that may be meant."""
    return f"there is no verb {word!r}; {_meant(word, verbs) or 'delay-queue help lists them'}"


def no_arguments(words: Iterable[str], verb: Subcommand) -> str:
    """The message for unknown arguments of a verb, with those that may be meant."""
    flags = [flag for one in verb.arguments for flag in one.flags if flag.startswith("--")]
    flags += OF_ALL
    names = [word.partition("=")[0] for word in words if word.startswith("--")]
    of_settings = resolve_name(SETTING_MEANT) if verb.name == "serve" else lambda _: ""
    meant = [_meant(name, flags) or of_settings(name) for name in names]
    return "; ".join([f"unrecognized arguments: {' '.join(words)}", *filter(None, meant)])


def _meant(word: str, words: Iterable[str]) -> str:
    near = get_close_matches(word, list(words))
    return f"did you mean {' or '.join(near)}?" if near else ""
