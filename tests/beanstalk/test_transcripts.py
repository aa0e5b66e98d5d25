"""The same bytes to a real beanstalkd and to ours: the same answers."""

import asyncio
import random
import re
from collections.abc import Iterable, Mapping
from typing import Final

import pytest

from .conftest import Served, at_home
from .odd import ODD
from .wire import Wire, say_at_once


@pytest.mark.parametrize("sent", ODD.values(), ids=ODD)
async def test_odd_bytes_are_answered_as_by_beanstalkd(
    served: Served, beanstalkd: int, tube: str, sent: bytes
) -> None:
    whole = await answers_to(beanstalkd, f"{tube}-00000", [sent])
    assert await answers_to(served.port, f"{tube}-00000", [sent]) == whole
    # bytes that come later reset the connection
    end = sent.find(b"quit") if b"put" not in sent else -1
    cuts = [cut for cut in range(1, end % len(sent)) if len(sent) < 400 or cut % 10_007 == 1]
    in_two = [answers_to(served.port, f"{tube}-{cut:05}", [sent[:cut], sent[cut:]]) for cut in cuts]
    for cut, answers in zip(cuts, await asyncio.gather(*in_two), strict=True):
        assert answers == whole, cut


async def answers_to(port: int, tube: str, pieces: list[bytes]) -> bytes:
    """The answers to a client that uses and watches its own tube, without what differs between the servers."""
    home = f"use {tube}\r\nwatch {tube}\r\nignore default\r\n".encode()
    answers = await say_at_once(port, [home, *pieces])
    return re.sub(rb"(?m)^INSERTED \d+", b"INSERTED N", answers).replace(tube.encode(), b"TUBE")


# A line: who says it, and what. `{a}` is the number of the job whose body is a. An answer is waited for, unless a line
# begins with a dash: then it comes later, at a `?`.
TALKS: Final[dict[str, str]] = {
    "a job's life": """
        1 put 5 0 100 a
        1 stats-job {a}
        1 peek {a}
        1 peek-ready
        1 reserve
        1 stats-job {a}
        1 touch {a}
        1 release {a} 7 0
        1 stats-job {a}
        1 reserve-with-timeout 3
        1 bury {a} 9
        1 stats-job {a}
        1 peek-ready
        1 peek-buried
        1 kick 10
        1 peek-ready
        1 reserve
        1 release {a} 3 1000
        1 stats-job {a}
        1 peek-delayed
        1 kick-job {a}
        1 kick-job {a}
        1 reserve-job {a}
        1 delete {a}
        1 delete {a}
        1 stats-job {a}
    """,
    "urgent ones first": """
        1 put 30 0 100 a
        1 put 10 0 100 b
        1 put 4294967295 0 100 c
        1 put 20 0 100 d
        1 put 0 0 100 e
        1 put 1024 0 100 f
        1 put 10 0 100 g
        1 stats-tube $TUBE
        1 peek-ready
        1 reserve
        1 reserve
        1 reserve
        1 reserve
        1 reserve
        1 reserve
        1 reserve
        1 reserve-with-timeout 0
    """,
    "jobs of two connections": """
        1 put 5 0 100 a
        1 put 6 0 100 b
        1 reserve
        2 delete {a}
        2 release {a} 1 0
        2 bury {a} 1
        2 touch {a}
        2 reserve-job {a}
        2 kick-job {a}
        2 peek {a}
        2 stats-job {a}
        2 reserve
        1 delete {b}
        1 release {a} 1 0
        2 reserve
        2 delete {a}
        2 delete {b}
        1 delete {a}
    """,
    "each state can be deleted and reserved by its number": """
        1 put 5 0 100 a
        1 put 5 1000 100 b
        1 put 5 0 100 c
        1 put 5 1000 100 d
        1 reserve-job {c}
        1 bury {c} 4
        1 reserve-job {c}
        1 reserve-job {c}
        1 reserve-job {d}
        1 reserve-job {a}
        1 bury {c} 4
        1 delete {b}
        2 delete {c}
        1 delete {d}
        1 delete {a}
        1 stats-tube $TUBE
    """,
    "kick wakes the buried first": """
        1 put 5 1000 100 a
        1 put 5 1001 100 b
        1 put 5 0 100 c
        1 put 6 0 100 d
        1 reserve
        1 bury {c} 1
        1 reserve
        1 bury {d} 1
        1 kick 1
        1 kick 5
        1 kick 1
        1 peek-delayed
        1 kick 100
        1 kick 100
        1 stats-tube $TUBE
    """,
    "waiting": """
        1-reserve
        2 stats-tube $TUBE
        2 put 5 0 100 a
        1?
        1-reserve-with-timeout 20
        2 put 5 0 100 b
        1?
        1 reserve-with-timeout 0
        1 delete {a}
        1 delete {b}
    """,
    "the last second of a TTR": """
        1 put 5 0 1 a
        1 put 5 0 100 b
        1 reserve
        1 reserve
        1 reserve
        1 delete {a}
        1 reserve-with-timeout 0
        1 delete {b}
    """,
    "a TTR that runs out while it waits": """
        1 put 5 0 2 a
        1 reserve
        1 reserve-with-timeout 30
        1 release {a} 5 0
        1 delete {a}
    """,
    "who ends a connection gives its jobs back": """
        1 put 5 0 100 a
        1 put 6 0 100 b
        2 reserve
        2 reserve
        2 quit
        1 reserve
        1 reserve
        1 stats-job {b}
        1 delete {b}
    """,
    "a tube that is paused": """
        1 put 5 0 100 a
        1 pause-tube $TUBE 100
        1 stats-tube $TUBE
        1 reserve-with-timeout 0
        1 peek-ready
        1 reserve-job {a}
        1 release {a} 5 0
        1 pause-tube $TUBE 0
        1 reserve
        1 delete {a}
    """,
    "tubes": """
        1 list-tube-used
        1 use $TUBE-x
        2 stats-tube $TUBE-x
        1 put 5 0 100 a
        2 stats-tube $TUBE-x
        2 reserve-with-timeout 0
        2 watch $TUBE-x
        2 reserve
        2 ignore $TUBE-x
        2 stats-tube $TUBE-x
        2 delete {a}
        1 use $TUBE
        1 stats-tube $TUBE-x
        1 list-tubes-watched
    """,
    "the most urgent job of two tubes": """
        1 put 7 0 100 a
        1 put 3 0 100 b
        2 watch $TUBE-x
        1 use $TUBE-x
        1 put 5 0 100 c
        1 put 2000 0 100 d
        1 use $TUBE
        1 put 3000 0 100 e
        2 reserve
        2 reserve
        2 reserve
        2 reserve
        2 reserve
    """,
    "any bytes": """
        1 put 5 0 100 \\x00\\xff\\xfe\\x80\\r\\n\\x1b
        1 peek-ready
        1 reserve
    """,
}
# Lines of YAML that hold a current time, or that differ by design.
VARIABLE: Final = re.compile(
    rb"(?m)^(age|time-left|pause-time-left|cmd-\S+|file|total-jobs|kicks): .*$"
)


@pytest.mark.parametrize("talk", TALKS.values(), ids=TALKS)
async def test_a_talk_goes_as_with_beanstalkd(
    served: Served, beanstalkd: int, tube: str, talk: str
) -> None:
    lines = [line.strip().replace("$TUBE", tube) for line in talk.splitlines() if line.strip()]
    theirs, ours = await asyncio.gather(
        transcript(beanstalkd, tube, lines), transcript(served.port, tube, lines)
    )
    assert ours == theirs


async def transcript(port: int, tube: str, lines: Iterable[str]) -> list[tuple[str, bytes]]:
    """The lines that were sent, and their answers; jobs by their bodies."""
    numbers: dict[str, bytes] = {}
    said = []
    async with Wire.opened(port) as one, Wire.opened(port) as other:
        for wire in (one, other):
            await at_home(wire, tube)
        for line in lines:
            wire, manner = one if line[0] == "1" else other, line[1]
            body = await say(wire, line[2:], numbers)
            if manner != "-":
                answer = await wire.answer()
                if body and answer.startswith(b"INSERTED "):
                    numbers[body] = answer.split()[1]
                said.append((line, without_numbers(answer, numbers)))
    return said


async def say(wire: Wire, words: str, numbers: Mapping[str, bytes]) -> str:
    """Send it. Returns the body of a job that it puts."""
    for known, number in numbers.items():
        words = words.replace(f"{{{known}}}", number.decode())
    if not words.startswith("put "):
        await wire.send(words.encode() + b"\r\n" if words else b"")
        return ""
    *head, name = words.split(" ")
    body = name.encode().decode("unicode_escape").encode("latin-1")
    await wire.send(" ".join([*head, str(len(body))]).encode() + b"\r\n" + body + b"\r\n")
    return name


def without_numbers(answer: bytes, numbers: Mapping[str, bytes]) -> bytes:
    names = {number: name.encode("unicode_escape") for name, number in numbers.items()}

    def name(found: re.Match[bytes]) -> bytes:
        return found[1] + names.get(found[2], found[2])

    answer = re.sub(rb"(?m)(^(?:INSERTED|RESERVED|FOUND|id:) )(\d+)\b", name, answer)
    if answer.startswith(b"OK"):
        answer = VARIABLE.sub(rb"\1", answer.partition(b"\n")[2])
    return answer


SEEDS: Final = range(8)
# `#` is the number of some job, `%` a priority that no other job has, so that the order is the same in both.
COMMANDS: Final = (
    *("put % 0 1000 3\r\nabc", "put % 0 1000 0\r\n", "put % 1000 1000 2\r\n\r\n"),
    *("reserve-with-timeout 0", "reserve-with-timeout 0", "reserve-with-timeout 0"),
    *("delete #", "delete #", "release # % 0", "release # % 1000", "bury # %", "touch #"),
    *("kick 1000", "kick-job #", "peek #", "peek-ready", "reserve-job #"),
    *("list-tube-used", "nonsense", "put 1 1 1", "put % 0 1000 3\r\nabcd", "use -"),
    "put % 0 1000 65536\r\n" + "y" * 65536,
)


@pytest.mark.parametrize("seed", SEEDS)
async def test_long_mixed_pipelines_are_answered_as_by_beanstalkd(
    served: Served, beanstalkd: int, tube: str, seed: int
) -> None:
    theirs, ours = await asyncio.gather(
        *(mixed(port, tube, random.Random(seed)) for port in (beanstalkd, served.port))
    )
    assert ours == theirs


async def mixed(port: int, tube: str, chance: random.Random) -> list[tuple[bytes, bytes]]:
    """The bursts that were sent, each cut in two somewhere, and the answers; jobs by their order."""
    priorities = chance.sample(range(5000), 2000)
    numbers: list[bytes] = []
    said = []
    async with Wire.opened(port) as wire:
        await at_home(wire, tube)
        for _ in range(60):
            burst = [
                made(command, chance, numbers, priorities)
                for command in chance.choices(COMMANDS, k=chance.randint(1, 12))
            ]
            data = b"".join(burst)
            cut = int(chance.random() * len(data))  # numbers may be longer in one of the servers
            await wire.send(data[:cut])
            await asyncio.sleep(chance.choice((0, 0.001)))
            await wire.send(data[cut:])
            for command in burst:
                answer = await wire.answer()
                if answer.startswith(b"INSERTED "):
                    numbers.append(answer.split()[1])
                said.append((named(command, numbers), named(answer, numbers)))
    return said


def made(command: str, chance: random.Random, numbers: list[bytes], priorities: list[int]) -> bytes:
    place = chance.randrange(1000)
    number = numbers[place % len(numbers)] if numbers else b"999999999"
    priority = b"%d" % priorities.pop()
    return command.encode().replace(b"#", number).replace(b"%", priority) + b"\r\n"


def named(line: bytes, numbers: list[bytes]) -> bytes:
    """A command or an answer, with a job's place instead of its number."""
    word, space, rest = line[:100].partition(b" ")
    number = re.match(rb"\d+", rest)
    if number is None or number[0] not in numbers or word in {b"put", b"kick", b"KICKED"}:
        return line[:100]
    return b"%b%b#%d%b" % (word, space, numbers.index(number[0]), rest[number.end() :])
