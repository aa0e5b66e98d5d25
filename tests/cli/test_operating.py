"""What the command line offers operators: all topics at once, and live."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from delayqueue import Client
from tests.processes import Processes, QueueServer, environment, free_port

from .conftest import Ended

Run = Callable[..., Ended]

SOON_S = 60.0


@pytest.fixture
def two_topics(run: Run, topic: str) -> Iterator[list[str]]:
    """The ids of dead letters of two topics; there are no others."""
    ids = [f"{topic}-{letter}" for letter in "abc"]
    for job_id, of_topic in zip(ids, [topic, topic, f"{topic}-2"], strict=True):
        run("push", of_topic, "body", "--id", job_id).ok()
        run("bury", job_id, "--message", f"no route\nto {job_id}").ok()
    yield ids
    for of_topic in (topic, f"{topic}-2"):
        run("purge", of_topic).ok()


def test_dead_letters_of_all_topics_are_listed_with_their_messages(
    run: Run, two_topics: list[str]
) -> None:
    head, *rows = run("list", "--state", "buried").ok().splitlines()
    assert head.split()[-1] == "MESSAGE"
    assert [row.split()[0] for row in rows] == two_topics
    assert rows[0].endswith(rf"no route\nto {two_topics[0]}")
    first = json.loads(run("list", "--state", "buried", "--limit", "1", "--json").ok())
    assert [job["id"] for job in first] == two_topics[:1]
    assert run("list").failed(1) == "give topic, tag or both"


def test_all_dead_letters_are_kicked(run: Run, topic: str, two_topics: list[str]) -> None:
    assert run("kick", "--all", "--topic", topic).ok() == "count: 2"
    assert run("kick", "--all", "--state", "buried").ok() == "count: 1"
    assert run("kick", "--all").ok() == "count: 0"
    ready = json.loads(run("list", "--state", "ready", "--json").ok())
    assert {job["id"] for job in ready} == set(two_topics)
    assert "--all: goes with" in run("kick", "--all", *two_topics).failed(2)
    assert "--all: goes with" in run("kick", "--all", "--topic", topic, "--count", "5").failed(2)
    assert "--all: goes with" in run("kick", "--all", "--body", "for all").failed(2)


@pytest.mark.usefixtures("two_topics")
def test_topics_with_dead_letters_are_found(run: Run, topic: str) -> None:
    run("push", f"{topic}-3", "healthy").ok()
    lines = run("topics", "--buried", "--sort", "buried", "--match", topic).ok().splitlines()
    assert [line.split()[0] for line in lines] == ["TOPIC", topic, f"{topic}-2"]
    run("purge", f"{topic}-3").ok()


def test_what_is_piped_is_printed_again_and_again(server: QueueServer, topic: str) -> None:
    command = [sys.executable, "-m", "delayqueue", "topics", "--match", topic, "--watch", "100ms"]
    with subprocess.Popen(
        command, env=environment({"url": server.url}), stdout=subprocess.PIPE
    ) as watching:
        assert watching.stdout is not None
        assert [watching.stdout.readline() for _ in range(3)] == [b"no topics\n"] * 3
        watching.terminate()


class Terminal:
    """The program in a terminal of its own."""

    def __init__(self, *arguments: str, url: str, more: str = "") -> None:
        """`more`: redirections of a shell."""
        ours, theirs = pty.openpty()
        self._ours = ours
        self._shown = b""
        self.former = self.settings()
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" {more}', "sh", sys.executable, "-m", "delayqueue", *arguments],
            env=environment({"url": url}) | {"COLUMNS": "100", "LINES": "20"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def shows(self, text: str) -> str:
        """All that was shown, once this text has appeared after what was seen before."""
        until = time.monotonic() + SOON_S
        while text not in (shown := self._shown.decode()):
            assert select.select([self._ours], [], [], until - time.monotonic())[0], shown
            self._shown += os.read(self._ours, 65536)
        self._shown = b""
        return shown

    def settings(self) -> list[Any]:
        """Whether it echoes, reads lines, and so on."""
        return termios.tcgetattr(self._ours)

    def press(self, key: str) -> None:
        os.write(self._ours, key.encode())


def test_top_is_live_and_leaves_the_terminal_as_it_was(
    run: Run, server: QueueServer, topic: str, two_topics: list[str]
) -> None:
    terminal = Terminal("top", "--every", "100ms", url=server.url)
    shown = terminal.shows(f"{topic}-2 ")
    assert shown.startswith("\x1b[?1049h")
    assert "buried 3" in shown
    assert "buried\x1b[K" in shown.split(f"{topic}-2 ")[0]  # why the other topic is listed
    run("delete", two_topics[0]).ok()
    terminal.shows("buried 2")
    terminal.press("x")
    terminal.shows("buried 2")
    terminal.press("q")
    assert terminal.process.wait(SOON_S) == 0
    terminal.shows("\x1b[?1049l")


def test_top_leaves_the_terminal_as_it_was_when_it_is_told_to_end(server: QueueServer) -> None:
    terminal = Terminal("top", "--every", "100ms", url=server.url)
    terminal.shows("oldest ready")
    assert terminal.settings() != terminal.former
    terminal.process.terminate()
    assert terminal.process.wait(SOON_S) == 143
    terminal.shows("\x1b[?25h\x1b[?1049l")
    assert terminal.settings() == terminal.former


def test_top_is_live_without_a_standard_input(server: QueueServer) -> None:
    terminal = Terminal("top", "--every", "100ms", url=server.url, more="<&-")
    for _ in range(2):
        terminal.shows("oldest ready")
    terminal.process.terminate()
    terminal.process.wait(SOON_S)


def test_a_terminal_has_a_traceback_on_lines_and_a_program_on_one(
    run: Run, server: QueueServer, topic: str
) -> None:
    with Client(server.url) as queue:
        job_id = queue.push(topic, retry=["1h"])
        job = queue.pop(topic)
        assert job
        queue.release(job, message="ValueError: no\nin close_order\x1b[2J")
    terminal = Terminal("get", job_id, url=server.url)
    shown = terminal.shows("in close_order\\x1b[2J\r\n")
    assert re.search(r"message: +ValueError: no\r\n    in close_order", shown)
    assert terminal.process.wait(SOON_S) == 0
    piped = run("get", job_id).ok()
    assert piped.count(r"ValueError: no\nin close_order") == 2


def test_it_goes_on_when_the_server_is_away_for_a_while(processes: Processes) -> None:
    server = processes.server()
    terminal = Terminal("top", "--every", "100ms", url=server.url)
    terminal.shows("no topics")
    server.kill()
    terminal.shows("start the server")
    server.start()
    terminal.shows("no topics")
    terminal.process.send_signal(signal.SIGINT)  # Ctrl-C
    assert terminal.process.wait(SOON_S) == 0


def test_a_server_that_was_never_there_ends_it(run: Run) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert "start the server" in run("top", "--url", url).failed(3)


COMPLETED: Final = """
eval "$(delay-queue completion bash)"
COMP_LINE="$1"; COMP_POINT=${#1}; COMP_TYPE=9; read -ra COMP_WORDS <<<"$1"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_python_argcomplete delay-queue
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("delay-queue sche", {"schedule", "schedules"}),
        ("delay-queue list --sta", {"--start", "--state"}),
        ("delay-queue list --state b", {"buried"}),
        ("delay-queue peek {topic}", {"{topic}", "{topic}-2"}),
        ("delay-queue peek --url http://127.0.0.1:1 t", set[str]()),
        ("delay-queue --url http://127.0.0.1:1 peek t", set[str]()),
        ("delay-queue --token= --json peek {topic}", {"{topic}", "{topic}-2"}),
    ],
)
@pytest.mark.usefixtures("two_topics")
def test_a_shell_completes_verbs_options_and_topics(
    server: QueueServer, topic: str, line: str, offered: set[str]
) -> None:
    programs = Path(sys.executable).parent
    shown = subprocess.run(
        ["bash", "-c", COMPLETED, "bash", line.format(topic=topic)],
        env=environment({"url": server.url}) | {"PATH": f"{programs}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    assert set(shown.split()) == {each.format(topic=topic) for each in offered}
