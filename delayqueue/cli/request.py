"""Shared by all verbs that ask a running server over HTTP."""

import json
from argparse import Namespace
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from delayqueue.cli import asking, tables
from delayqueue.cli.output import OutputError, as_json, check_output, drop_rest, write_error
from delayqueue.cli.remote_server import RemoteServer, RequestError
from delayqueue.cli.signals import hold_signals, raised_signals
from delayqueue.cli.subcommand import (
    CONFIG_FILE,
    DONE,
    REFUSED,
    UNREACHABLE,
    USAGE,
    Argument,
    Subcommand,
    complain,
    flag,
    option,
    say,
)
from delayqueue.cli.watching import watch
from delayqueue.cli.words import as_of_now
from delayqueue.client.address import DEFAULT_URL, TOKEN_VARIABLE, URL_VARIABLE
from delayqueue.client.api_request import STRANGE
from delayqueue.config.startup import StartupError

LENGTHS: Final = "A LENGTH is a number of seconds, or a text like 500ms, 15s, 30m, 2h, 1d."
TIMES: Final = (
    "A TIME is now, +2h, 2026-01-31, '2026-01-31 12:00' (local time) or unix\n"
    "seconds; a time in the past needs an equals sign: --start=-30m."
)

CONNECTION: Final = (
    option(
        "--url",
        f"URL of the server [bind_address of -c FILE, else {URL_VARIABLE}, else {DEFAULT_URL}]",
    ),
    option(
        "--token",
        f"lets you in; other users can see arguments, so rather set the variable [{TOKEN_VARIABLE}]",
    ),
    flag("--json", "print the answer's data as one line of JSON"),
    CONFIG_FILE,
)
NOT_OURS: Final = "this is not the answer of a delay-queue server; correct --url"
NO_FIELDS: Final = {"run", "verb", "config", "url", "token", "json", "watch"}


class _Answer(NamedTuple):
    """The answer's data, what is printed of it, and the exit status. `is_missing`: `nothing` is printed, too."""

    data: Any
    text: str
    is_missing: bool
    status: int


class _RemoteVerb(NamedTuple):
    """What a verb asks, and what becomes of the answer; remote() describes its members."""

    ask: asking.Ask
    show: Callable[[Any], str]
    nothing: str
    give_back: asking.GiveBack | None

    def run(self, asked: Namespace) -> int:
        """Ask the server, and print its answer. Returns the exit status."""
        check_output()  # before anything is done
        try:
            with raised_signals(), RemoteServer(asked) as server:
                if again_s := vars(asked).get("watch"):
                    return watch(lambda: self._answer(server, asked).text, again_s)
                # such a request takes jobs out of the queue before they are here; one that only waits may be left
                is_taken = self.give_back is not None and not vars(asked).get("timeout")
                hold_signals(hold=is_taken)
                try:
                    return self._print(server, self._answer(server, asked), asked)
                finally:
                    hold_signals(hold=False)
        except RequestError as error:
            return complain([str(error)], error.status)
        except StartupError as error:
            return complain(error.lines(None), USAGE)

    def _answer(self, server: RemoteServer, asked: Namespace) -> _Answer:
        fields = {
            name: as_of_now(value)
            for name, value in vars(asked).items()
            if value is not None and name not in NO_FIELDS
        }
        try:
            data = self.ask(server, fields)
            text = as_json(data) if asked.json else _readable(data, self.show)
            is_missing = bool(self.nothing) and _is_empty(data)
            return _Answer(data, text, is_missing, REFUSED if is_missing else _status(data))
        except STRANGE as error:
            raise RequestError(UNREACHABLE, f"{server}: {NOT_OURS} ({error!r})") from error

    def _print(self, server: RemoteServer, said: _Answer, asked: Namespace) -> int:
        """Print the answer. Returns the exit status.

        Raises OutputError if that is impossible and nothing was taken, KeyboardInterrupt if a signal ends it.
        """
        if asked.json or said.data or not said.is_missing:
            try:
                hold_signals(hold=False)
                say(said.text)
            except (OutputError, KeyboardInterrupt) as error:
                if self.give_back is None or not said.data:
                    raise
                hold_signals(hold=True)  # a second Ctrl-C
                _rescue(server, said.data, str(error) or "interrupted", self.give_back)
                if isinstance(error, OutputError):
                    return REFUSED
                drop_rest()
                raise
        return complain([self.nothing], said.status) if said.is_missing else said.status


def remote(
    name: str,
    text: str,
    *arguments: Argument,
    ask: asking.Ask | None = None,
    show: Callable[[Any], str] = tables.facts,
    nothing: str = "",
    give_back: asking.GiveBack | None = None,
) -> Subcommand:
    """A row: `ask` gets the arguments as the fields of a request, `show` makes the answer readable.

    Without `ask`, they go to the endpoint that has the verb's name. If the answer is empty, `nothing` is printed and
    the status is 1. What is taken and cannot be printed, also because of a signal, is given to `give_back`. An argument
    whose dest is `watch` says how often to ask again.
    """
    verb = _RemoteVerb(ask or asking.at(f"/{name}"), show, nothing, give_back)
    words = {one.options.get("metavar") for one in arguments}
    notes = [LENGTHS] * ("LENGTH" in words) + [TIMES] * ("TIME" in words)
    return Subcommand(name, text, verb.run, (*arguments, *CONNECTION), "\n".join(notes))


def _rescue(server: RemoteServer, data: Any, reason: str, give_back: asking.GiveBack) -> None:
    """Print on standard error what was taken; if that takes nothing either, give it back."""
    try:
        write_error(f"delay-queue: {reason}; what was taken is here:\n{json.dumps(data)}\n")
    except OSError:
        give_back(server, data)


def _readable(data: Any, show: Callable[[Any], str]) -> str:
    """The answer for people."""
    if data is None:
        return "ok"
    each = _each(data)
    if isinstance(each, list) and any("code" in one for one in each if one):
        return tables.outcomes(each)
    return show(data)


def _each(data: Any) -> Any:
    """The outcome of each of many jobs, even if the answer also counts them."""
    is_counted = isinstance(data, dict) and {"count", "results"} <= data.keys()
    return data["results"] if is_counted else data


def _is_empty(data: Any) -> bool:
    """Whether the answer is empty, or lacks one of several jobs."""
    return data in (None, [], {"count": 0}) or (isinstance(data, list) and None in data)


def _status(data: Any) -> int:
    """The exit status; if one of many was refused, the call counts as refused."""
    each = _each(data)
    codes = [one.get("code") for one in each] if isinstance(each, list) else []
    return REFUSED if any(codes) else DONE
