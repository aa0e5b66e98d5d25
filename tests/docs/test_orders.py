"""The programs of the how-tos: the same commands do the same in each language."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest

from tests.partner import Answer, Partner
from tests.processes import REPOSITORY, Processes, QueueServer, StoreServer

from .markdown import COMMAND_S, at, ended, run, some_blocks

PARTS: Final = ("databind", "core", "annotations")
JACKSON: Final = [Path(f"/usr/share/java/jackson-{part}.jar") for part in PARTS]
LANGUAGES: Final[dict[str, list[str]]] = {
    "php": ["php", "orders.php"],
    "python": [sys.executable, "-B", "orders.py"],
    "node": ["node", "orders.mjs"],
    "go": ["go", "orders.go"],
    "java": ["java", "Orders.java"],
}
CLASSES: Final = ":".join(map(str, JACKSON))


@pytest.fixture(scope="module", params=LANGUAGES)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs the program of a language; skipped if its compiler is not installed."""
    language = str(request.param)
    return compiled(source_of(language), language, tmp_path_factory.mktemp(language))


def source_of(language: str) -> Path:
    return REPOSITORY / "examples" / language / LANGUAGES[language][-1]


def compiled(source: Path, language: str, folder: Path) -> list[str]:
    tool, *arguments, _ = LANGUAGES[language]
    needs(tool, JACKSON if language == "java" else [])
    if language == "go":
        run(["go", "build", "-o", str(folder / "orders"), str(source)])
        return [str(folder / "orders")]
    if language == "java":
        run(["javac", "-cp", CLASSES, "-d", str(folder), str(source)])
        return ["java", "-cp", f"{CLASSES}:{folder}", "Orders"]
    return [tool, *arguments, str(source)]


def needs(tool: str, files: list[Path]) -> None:
    for missing in [tool] if shutil.which(tool) is None else [f for f in files if not f.exists()]:
        pytest.skip(f"{missing} is not installed")


def test_a_worker_outlives_a_restart_closes_orders_and_gives_failures_back(
    program: list[str], processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.configured("language = en", redis_server)
    variables = os.environ | {"DELAYQUEUE_URL": server.url}
    with subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *program, "work", "2"],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        try:
            assert worker.stderr
            assert worker.stderr.readline()  # there is no server yet
            server.start()
            for arguments in (["1001", "0.1"], ["nobody", "0.2"], ["1003", "60"]):
                assert run([*program, "place", *arguments], environment=variables) == ""
            assert run([*program, "paid", "1003"], environment=variables) == "cancelled 1\n"
            printed, _ = worker.communicate(timeout=COMMAND_S)
        finally:
            worker.kill()
    assert printed == "close-1001: closed order 1001\nclose-nobody: no order nobody\n"
    (failed,) = listed(server)
    assert (failed["id"], failed["attempt"]) == ("close-nobody", 1)
    assert failed["state"] in {"delayed", "ready"}  # for ten seconds delayed
    assert failed["message"] == "no order nobody"


def test_a_finish_that_had_no_answer_is_sent_again(program: list[str]) -> None:
    busy = Answer(429, '{"code":10,"message":"too many requests","data":null}')
    away = Answer(200, '{"code":6,"message":"the store is unavailable","data":null}')
    with Partner(popped('{"order":"1001"}'), away, busy, away, answered(None)) as queue:
        worker = ran(program, "work", "1", queue=queue)
    assert worker.stdout == "a: closed order 1001\n"
    assert [json.loads(body).get("receipt") for body in queue.received] == [None, *["r"] * 4]
    assert {headers["Authorization"] for _, headers in queue.heads} == {"Bearer secret"}


@pytest.mark.parametrize("language", ["python", "node", "go", "java"])
def test_a_handler_that_took_longer_than_its_ttr_learns_of_it(
    language: str, tmp_path: Path
) -> None:
    source = source_of(language)
    slow = tmp_path / source.name
    slow.write_text(re.sub("(TTR_S|ttrS) = 60", r"\1 = 0", source.read_text("utf-8")), "utf-8")
    late = Answer(200, '{"code":4,"message":"stale receipt","data":null}')
    with Partner(popped('{"order":"1001"}'), late) as queue:
        worker = ran(compiled(slow, language, tmp_path), "work", "1", queue=queue)
    assert worker.stdout == "a: stale receipt\n"


def popped(body: str) -> Answer:
    job = {"topic": "order-close", "id": "a", "attempt": 1, "receipt": "r", "due": 0.0}
    return answered(job | {"body": body})


def answered(data: object) -> Answer:
    return Answer(200, json.dumps({"code": 0, "message": "ok", "data": data}))


def ran(program: list[str], *arguments: str, queue: Partner) -> subprocess.CompletedProcess[str]:
    variables = {"DELAYQUEUE_URL": queue.url, "DELAYQUEUE_TOKEN": "secret"}
    return ended([*program, *arguments], environment=os.environ | variables)


def test_no_body_ends_a_worker_and_the_queue_is_told_the_reason(program: list[str]) -> None:
    bodies = ["no json", "null", "7", '"x"', "[]", "{}", '{"order":[]}', "[" * 100_000]
    answers = [each for body in bodies for each in (popped(body), answered({"due": 1.0}))]
    with Partner(*answers, popped('{"order":"1001"}'), answered(None)) as queue:
        worker = ran(program, "work", str(len(bodies) + 1), queue=queue)
    assert worker.returncode == 0, worker
    assert worker.stdout.splitlines()[-1] == "a: closed order 1001"
    *failures, done = [json.loads(body) for body in queue.received[1::2]]
    for body, report in zip(bodies, failures, strict=True):
        assert report["receipt"] == "r"
        assert report["message"] not in {"", "null", None}, body
        assert report["fallback"] == 10  # else a job without a schedule comes again at once
    assert done["message"] == "closed order 1001"
    assert "fallback" not in done


def test_no_answer_ends_a_worker_or_counts_as_done(program: list[str]) -> None:
    """The answers of something else, such as a proxy: to a poll, then to the report of an end."""
    odd = [Answer(200, text) for text in ("7", "{}")] + [answered("x"), answered({}), answered(7)]
    end = Answer(200, '{"code":[]}'), answered(None)
    with Partner(*odd, popped('{"order":"1001"}'), *end) as queue:
        worker = ran(program, "work", "1", queue=queue)
    assert worker.returncode == 0, worker
    assert worker.stdout.splitlines()[-1] == "a: closed order 1001"
    reports = [json.loads(body).get("message") for body in queue.received[-2:]]
    assert reports == ["closed order 1001"] * 2


def test_a_wrong_argument_is_refused_and_pushes_nothing(program: list[str]) -> None:
    with Partner(answered(None)) as queue:
        for arguments in ("", "place 1", "place 1 soon", "paid", "work soon"):
            refused = ran(program, *arguments.split(), queue=queue)
            assert refused.returncode != 0, arguments
            assert refused.stderr, arguments
    assert queue.received == []


def test_what_the_page_adds_to_files_of_laravel_is_php() -> None:
    needs("php", [])
    for block in some_blocks("docs/howto/laravel.md", "php"):
        # a file, a statement, or members of an array
        member = block.text.startswith("'")
        text = f"<?php return [{block.text}];" if member else f"<?php\n{block.text}"
        run(["php", "-l"], block.text if block.title else text)


def test_the_library_that_people_have_works_with_what_is_shown(
    server: QueueServer, tmp_path: Path
) -> None:
    library = os.environ.get("DELAYQUEUE_PHP")
    if library is None:
        pytest.skip("DELAYQUEUE_PHP is not set: a folder with php-cpm/delayqueue-php in vendor/")
    (tmp_path / "vendor").symlink_to(Path(library) / "vendor")
    for file in (REPOSITORY / "examples/php-cpm").iterdir():
        (tmp_path / file.name).write_text(at(server, file.read_text("utf-8")), encoding="utf-8")
    push = f"cd {tmp_path} && php push.php 1001 0 && php push.php nobody 0"
    worker = "php vendor/php-cpm/delayqueue-php/bin/delayqueue-php -c config.ini"
    # it exits by itself only after a poll that brought nothing
    printed = run(["bash", "-c", f"{push} && {{ timeout -s KILL 4 {worker} || true; }} 2>&1"])
    assert "closed order 1001" in printed
    assert "Job execution failed no order nobody" in printed
    (failed,) = [job for job in listed(server, "order") if job["state"] == "reserved"]
    assert (failed["id"], failed["tags"]) == ("close-nobody", ["order:nobody"])


def listed(server: QueueServer, topic: str = "order-close") -> list[dict[str, object]]:
    with urlopen(f"{server.url}/list", json.dumps({"topic": topic}).encode()) as answer:
        jobs: list[dict[str, object]] = json.load(answer)["data"]["jobs"]
        return jobs
