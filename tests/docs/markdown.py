"""The code blocks of the documentation, and running the console ones.

A console block holds commands after "$ " and the answer of each below it, one JSON text on a line or on several.
Words in angle brackets stand for what differs from run to run; in a command, for what the last answer had there.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from delayqueue.errors import ADDED, DONE, NoSuchJob
from tests.processes import REPOSITORY, QueueServer, environment, run_program

ADDRESS: Final = "localhost:9277"  # where the documentation has the server
BEANSTALK_PORT: Final = "11300"  # and its port for beanstalkd's protocol
NEAR_S: Final = 2 * 86_400  # times in examples are closer to now than this
COMMAND_S: Final = 120.0  # compiling takes most of it on a busy machine
FORGOTTEN_S: Final = 30.0
SHELL: Final = set("|&;<>$`\\")  # of a command that needs one
COUNTS_TOPICS: Final = re.compile(r"/(topics|stats)\b|delay-queue (topics|stats)\b")

# messages of the server in each language
MESSAGE: Final = re.compile(r'(?<="message":)"[^"]*"')
ENGLISH: Final = {
    json.dumps(text.zh, ensure_ascii=False): json.dumps(text.en)
    for text in (ADDED, DONE, NoSuchJob.default)
}

BLOCK: Final = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
EXAMPLE: Final = re.compile(r"^\$ (.+(?:\\\n.+)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and abs(value - time.time()) < NEAR_S


def _is_age(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < COMMAND_S


def _is_text(pattern: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


PLACEHOLDERS: Final[dict[str, Callable[[object], bool]]] = {
    "<time>": _is_time,
    "<age>": _is_age,
    "<count>": lambda value: type(value) is int and value >= 0,
    "<receipt>": _is_text(r"[0-9a-f]{12}-[0-9a-f]+-[0-9a-f]{8}"),
    "<id>": _is_text(r"[0-9a-f]{32}"),
    "<cursor>": _is_text(r"[\w=-]+"),
    "<paths>": lambda value: isinstance(value, list) and "/push" in value,
}
UNQUOTED: Final = re.compile(r'(?<!")<\w+>(?!")')


class Block(NamedTuple):
    """One fenced block; `language` is the word after the fence, `title` its file name, or ""."""

    language: str
    title: str
    text: str


class Example(NamedTuple):
    """A command and the answer shown below it."""

    command: str
    answer: str


def read(page: str) -> str:
    """A page by its path in the repository."""
    return (REPOSITORY / page).read_text(encoding="utf-8")


def in_english(page: str) -> str:
    """A page with the messages of a server whose `language` is English, and without the word that makes it so."""
    page = page.replace("DELAYQUEUE_LANGUAGE=en ", "")
    return MESSAGE.sub(lambda found: ENGLISH.get(found[0], found[0]), page)


def blocks(text: str, *languages: str) -> list[Block]:
    """The fenced blocks, of some languages or of all."""
    found = [Block(*groups) for groups in BLOCK.findall(text)]
    return [block for block in found if not languages or block.language in languages]


def some_blocks(page: str, language: str) -> list[Block]:
    """The fenced blocks of a page in a language, of which there is one at least."""
    found = blocks(read(page), language)
    assert found
    return found


def shown(page: str, language: str, start: str) -> str:
    """The block of a page that starts like this."""
    (text,) = [block.text for block in blocks(read(page), language) if block.text.startswith(start)]
    return text


def examples(text: str) -> list[Example]:
    """The commands of all console blocks, of which there is one at least, in order."""
    found = [example for block in blocks(text, "console") for example in typed(block)]
    assert found
    return found


def typed(block: Block) -> list[Example]:
    """The commands of a console block. Every line of it belongs to one."""
    parts = EXAMPLE.findall(block.text)
    assert "".join(f"$ {command}\n{answer}" for command, answer in parts) == block.text
    return [Example(*part) for part in parts]


def at(server: QueueServer, text: str) -> str:
    """The text for this server."""
    return text.replace(ADDRESS, server.address).replace(BEANSTALK_PORT, str(server.beanstalk_port))


@contextmanager
def running(
    command: list[str],
    folder: Path,
    environment: Mapping[str, str],
    out: Path,
    ends: Container[int] = (0,),
) -> Iterator[None]:
    """Run a program meanwhile, which adds its output to `out`. Told to end, it exits with one of these statuses."""
    with (
        out.open("ab") as printed,
        subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            cwd=folder,
            env=environment,
            stdout=printed,
            stderr=printed,
        ) as process,
    ):
        try:
            yield
            process.terminate()
            assert process.wait(60) in ends, out.read_text("utf-8")
        finally:
            process.kill()


def ended(
    command: Sequence[str | Path],
    text: str | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """How a command ends, and what it prints; `text` is its input."""
    return subprocess.run(
        command,
        cwd=folder,
        input=text,
        env=environment,
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )


def run(
    command: list[str], text: str | None = None, environment: dict[str, str] | None = None
) -> str:
    """What a command prints; `text` is its input. It must succeed."""
    done = ended(command, text, environment)
    assert done.returncode == 0, done
    assert not done.stderr, done
    return done.stdout


def typed_in(command: str, folder: Path, **settings: object) -> tuple[int, str]:
    """The exit status of a command that somebody types in this folder, and what it prints, errors first.

    Our own program is a fork, which takes a tenth of the time, unless the shell has something to do.
    """
    if command.startswith("delay-queue ") and not SHELL.intersection(command):
        ended = run_program(*shlex.split(command)[1:], settings=settings, directory=folder)
        return ended.returncode, ended.stderr + ended.stdout
    programs = Path(sys.executable).parent
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(settings) | {"PATH": path, "LC_ALL": "C.UTF-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )
    return done.returncode, done.stdout


def looks(command: str) -> Iterator[None]:
    """Run it once; if it counts topics, again for a while: a topic without jobs is forgotten a moment later."""
    deadline = time.monotonic() + FORGOTTEN_S
    yield
    while COUNTS_TOPICS.search(command) and time.monotonic() < deadline:
        time.sleep(0.1)
        yield


class Reader:
    """A reader who types in the examples of a page, one after the other."""

    def __init__(self, server: QueueServer) -> None:
        self._server = server
        self._last: dict[str, Any] = {}

    def follow(self, example: Example) -> tuple[str, str]:
        """Run the command. Returns the answer that is shown, and what was printed; they must be equal.

        As text, so that the order of the members counts, and 1 is not true.
        """
        for _ in looks(example.command):
            printed = run(["bash", "-c", self.command(example)])
            answer, got = self.compare(example.answer, printed)
            if answer == got:
                break
        return answer, got

    def command(self, example: Example) -> str:
        """The command to type, with the words in angle brackets filled in from the last answers."""
        command = at(self._server, example.command)
        for word, value in self._last.items():
            command = command.replace(word, str(value))
        return command

    def compare(self, answer: str, printed: str) -> tuple[str, str]:
        """The shown and the printed JSON, as texts that are equal if these are."""
        got = json.loads(printed)
        shown = json.loads(UNQUOTED.sub(r'"\g<0>"', answer))
        return _text(self._filled(shown, got)), _text(got)

    def _filled(self, shown: Any, printed: Any) -> Any:
        """The shown text, with its placeholders filled in from the printed one."""
        if isinstance(shown, dict) and isinstance(printed, dict):
            return {key: self._filled(value, printed.get(key)) for key, value in shown.items()}
        if isinstance(shown, list) and isinstance(printed, list) and len(shown) == len(printed):
            return [self._filled(*pair) for pair in zip(shown, printed, strict=True)]
        if isinstance(shown, str) and shown in PLACEHOLDERS and PLACEHOLDERS[shown](printed):
            self._last[shown] = printed
            return printed
        return shown


def _text(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)
