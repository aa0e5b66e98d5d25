"""Shell completion: verbs, options, and the server's topics."""

import os
import sys
from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Iterable
from typing import Any, Final

from delayqueue.cli.output import write
from delayqueue.cli.remote_server import RemoteServer, RequestError
from delayqueue.cli.subcommand import DONE, USAGE, complain
from delayqueue.client.api_request import STRANGE
from delayqueue.config.startup import StartupError

SHELLS: Final = ("bash", "zsh", "fish", "powershell")
ASKED_BY: Final = "_ARGCOMPLETE"  # the variable by which the shell asks
PATIENCE_S: Final = 1.0  # for the server's answer: somebody is waiting at the prompt
MOST_TOPICS: Final = 100
LEADING: Final = "leading_"  # options of a verb that stand before it


def completion(asked: Namespace) -> int:
    """Print the code for that shell."""
    try:
        from argcomplete.shell_integration import shellcode  # noqa: PLC0415  # not installed everywhere
    except ModuleNotFoundError:
        return complain(["completion needs a package: pip install argcomplete"], USAGE)
    code: str = shellcode(["delay-queue"], shell=asked.shell)
    write(code)
    return DONE


def is_shell_asking() -> bool:
    """Whether the program was started to complete a command line."""
    return ASKED_BY in os.environ


def answer_shell(parser: ArgumentParser) -> None:
    """If the shell asks, answer it and exit."""
    if is_shell_asking():
        try:
            import argcomplete  # noqa: PLC0415  # not installed everywhere
        except ModuleNotFoundError:
            sys.exit(USAGE)  # without a word: somebody is at the prompt
        argcomplete.autocomplete(parser, default_completer=_offered)  # type: ignore[arg-type]


def add_leading(parser: ArgumentParser, names: Iterable[str]) -> None:
    """Let options of a verb come before it; argcomplete does not move them as _taken_apart() does."""
    for name in names:
        kind = {"action": "store_true"} if name == "--json" else {"dest": LEADING + name[2:]}
        parser.add_argument(name, help=SUPPRESS, **kind)  # type: ignore[arg-type]


def _offered(prefix: str, action: Action, parsed_args: Namespace, **_: Any) -> list[str]:
    """The values for an argument without choices."""
    if action.dest != "topic":
        return []
    given = {"url": None, "token": None, "config": None} | vars(parsed_args)
    leading = {name: given[name] or given.get(LEADING + name) for name in ("url", "token")}
    asked = Namespace(**given | leading)
    try:
        with RemoteServer(asked, PATIENCE_S) as server:
            topics = server.post("/topics", {"match": prefix, "limit": MOST_TOPICS})
            return [topic["topic"] for topic in topics]
    except (RequestError, StartupError, *STRANGE):
        return []
