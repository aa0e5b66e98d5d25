"""Real, unmodified clients of beanstalkd: with our server they see what they see with beanstalkd."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.beanstalk.conftest import opened
from tests.docs.test_orders import needs
from tests.processes import LOOPBACK, Processes, StoreServer

HERE: Final = Path(__file__).parent
PHP: Final = Path("/usr/share/php")
PROGRAM_S: Final = 180.0

DIALOGUE: Final = """\
ready 3, of them urgent 3, delayed 1
soon
next
late
buried late, ready next, delayed asleep
kicked 1
next: state reserved pri 40 reserves 2 releases 1 buries 0 kicks 0 timeouts 0
late: state reserved pri 50 reserves 2 releases 0 buries 1 kicks 1 timeouts 0
deleted once
nothing is ready
258 bytes as they were
too big
of the other tube
of this tube
nothing while paused
paused
asleep
hurry
slow: state reserved pri 60 reserves 2 releases 0 buries 0 kicks 0 timeouts 1
slow: state reserved pri 60 reserves 3 releases 0 buries 0 kicks 0 timeouts 1
"""
LARAVEL: Final = """\
size 4
Processing Task
buries, attempt 1
Processed Task
Processing Task
done, attempt 1
Processed Task
Processing Task
fails, attempt 1
Processing Task
fails, attempt 2
fails failed: no such order
Failed Task
Processing Task
later, attempt 1
Processed Task
Processing Task
releases, attempt 1
Processed Task
Processing Task
releases, attempt 2
Processed Task
kicked 1
Processing Task
buries, attempt 2
Processed Task
size 1
Processing Task
kills, attempt 1
Processing Task
kills, attempt 2
Processing Task
kills failed: Task has been attempted too many times or run too long. The job may have previously timed out.
Failed Task
Clearing queues is not supported on [BeanstalkdQueue]
"""
SYMFONY: Final = """\
async 2
failed 0
done
fails
fails
later
async 0
failed 1
async 1
failed 1
kills
async 1
failed 1
fails
async 1
failed 0
"""
STAMP: Final = re.compile(r"^\[[^]]+\]\[\d+\] (\w+): *", re.MULTILINE)  # when, and which job


class Talk:
    """Runs programs of a client against one server."""

    def __init__(self, port: int, folder: Path) -> None:
        self.folder = folder
        self._port = port

    def run(self, *command: str, folder: Path = HERE, ends: int = 0) -> str:
        """What it prints; its exit status must be this."""
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PROGRAM_S,
            check=False,
        )
        assert done.returncode == ends, done
        return done.stdout

    def __call__(self, *command: str, tube: str, more: tuple[str, ...] = (), ends: int = 0) -> str:
        """What a program prints that works on its own tube."""
        return self.run(*command, LOOPBACK, str(self._port), tube, *more, ends=ends)


def greenstalk(talk: Talk) -> str:
    return talk(sys.executable, "-B", "with_greenstalk.py", tube="greenstalk")


def pheanstalk(talk: Talk) -> str:
    return talk("php", "with_pheanstalk.php", tube="pheanstalk")


def beaneater(talk: Talk) -> str:
    return talk("ruby", "with_beaneater.rb", tube="beaneater")


def go_beanstalk(talk: Talk) -> str:
    program = str(talk.folder / "with_go_beanstalk")
    talk.run("go", "build", "-o", program, ".", folder=HERE / "with_go_beanstalk")
    return talk(program, tube="go-beanstalk")


def in_one_order(printed: str, begins: str) -> str:
    """What a worker prints of several jobs: on a busy machine, a delay is over before another one begins."""
    return "".join(sorted(re.split(f"(?={begins})", printed, flags=re.MULTILINE)))


def laravel(talk: Talk) -> str:
    def artisan(*command: str, ends: int = 0) -> str:
        printed = talk("php", "laravel.php", tube="laravel", more=command, ends=ends)
        return STAMP.sub(r"\1 ", printed).replace("] \n", "]\n")

    work = ("queue:work", "beanstalkd", "--queue=laravel", "--max-jobs=1")
    printed = [
        artisan("dispatch", "done", "fails", "releases", "buries", "later"),
        in_one_order(artisan(*work, "--max-jobs=7"), "Processing Task"),
        artisan("kick"),
        artisan(*work),
        artisan("dispatch", "kills"),
        artisan(*work, ends=-signal.SIGKILL),
        artisan(*work, ends=-signal.SIGKILL),
        artisan(*work),
        artisan("queue:clear", "beanstalkd"),
    ]
    return "".join(printed)


def symfony(talk: Talk) -> str:
    def console(*command: str, ends: int = 0) -> str:
        return talk("php", "symfony.php", tube="symfony", more=command, ends=ends)

    consume = ("messenger:consume", "--limit=1")
    printed = [
        console("dispatch", "done", "fails", "later"),
        in_one_order(console(*consume, "async", "--limit=4"), r"^\w"),
        console("count"),
        console("dispatch", "kills"),
        console(*consume, "async", ends=-signal.SIGKILL),
        console("count"),
        console(*consume, "failed"),
        console("count"),
    ]
    return "".join(printed)


class Client(NamedTuple):
    """A client, what it prints, and what it needs besides this project: a program, and files."""

    speaks: Callable[[Talk], str]
    printed: str
    tool: str
    files: tuple[Path, ...] = ()


BRIDGE: Final = PHP / "Symfony/Component/Messenger/Bridge/Beanstalkd/autoload.php"
GEM: Final = Path("/usr/lib/ruby/vendor_ruby/beaneater.rb")
CLIENTS: Final = {
    "greenstalk": Client(greenstalk, DIALOGUE, "bash"),
    "pheanstalk": Client(pheanstalk, DIALOGUE, "php", (PHP / "Pheanstalk/autoload.php",)),
    "beaneater": Client(beaneater, DIALOGUE, "ruby", (GEM,)),
    "go-beanstalk": Client(go_beanstalk, DIALOGUE, "go"),
    "laravel": Client(laravel, LARAVEL, "php", (PHP / "Illuminate/Cache/autoload.php",)),
    "symfony": Client(symfony, SYMFONY, "php", (BRIDGE,)),
}


@pytest.fixture(scope="module", params=["beanstalkd", "ours"])
def ports(
    request: pytest.FixtureRequest, processes: Processes, redis_server: StoreServer
) -> dict[str, int]:
    """The port that each client talks to: that of beanstalkd, which defines what is right, or ours."""
    if request.param == "beanstalkd":
        needs("beanstalkd", [])
        # one each: if several connections wait, 1.12 sometimes misses that a time to run is over
        return {name: processes.beanstalkd().port for name in CLIENTS}
    return dict.fromkeys(CLIENTS, opened(processes, redis_server).port)


@pytest.fixture(scope="module")
def talks(
    ports: dict[str, int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[str]]]:
    """What each client prints. They run at the same time, as each of them waits for seconds."""
    folder = tmp_path_factory.mktemp("clients")
    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        yield {
            name: pool.submit(client.speaks, Talk(ports[name], folder))
            for name, client in CLIENTS.items()
        }


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_sees_of_ours_what_it_sees_of_beanstalkd(
    talks: dict[str, Future[str]], name: str
) -> None:
    client = CLIENTS[name]
    needs(client.tool, [*client.files])
    assert talks[name].result() == client.printed
