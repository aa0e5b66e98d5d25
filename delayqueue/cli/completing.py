"""What a shell offers when Tab is pressed: verbs, options, and the topics that the server has."""

import os
import sys
from argparse import Action, ArgumentParser, Namespace
from typing import Any, Final

from delayqueue.cli.call import CallError
from delayqueue.cli.request import server_of
from delayqueue.cli.verb import DONE
from delayqueue.config.startup import StartupError

SHELLS: Final = ("bash", "zsh", "fish", "powershell")
ASKED_BY: Final = "_ARGCOMPLETE"  # the variable by which the shell's code asks
PATIENCE_S: Final = 1.0  # for the server's answer: somebody waits before a prompt
MOST_TOPICS: Final = 100


def completion(asked: Namespace) -> int:
    """Print the code for that shell. Raises ModuleNotFoundError without argcomplete."""
    from argcomplete.shell_integration import shellcode  # noqa: PLC0415  # not everybody has it

    code: str = shellcode(["delay-queue"], shell=asked.shell)
    sys.stdout.write(code)
    return DONE


def answer_shell(parser: ArgumentParser) -> None:
    """Where it is the shell that asks, answer it and end. Raises ModuleNotFoundError without argcomplete."""
    if ASKED_BY in os.environ:
        import argcomplete  # noqa: PLC0415  # not everybody has it

        argcomplete.autocomplete(parser, default_completer=_offered)  # type: ignore[arg-type]


def _offered(prefix: str, action: Action, parsed_args: Namespace, **_: Any) -> list[str]:
    """What can stand for an argument that has no choices."""
    if action.dest != "topic":
        return []
    asked = Namespace(**{"url": None, "token": None, "config": None} | vars(parsed_args))
    try:
        with server_of(asked, PATIENCE_S) as server:
            topics = server.call("/topics", {"match": prefix, "limit": MOST_TOPICS})
    except (CallError, StartupError):
        return []
    return [topic["topic"] for topic in topics]
