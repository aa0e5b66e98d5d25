"""Generators of clients take /openapi.json without a warning, and what they make works."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.web.openapi import document
from tests.processes import Processes, StoreServer

GENERATE_S: Final = 60
pytestmark = pytest.mark.seldom  # what they make of the document changes with it alone
# pushes, pops and finishes a job, and finishes it once more
ROUND: Final = """\
import sys

from made import Client
from made.api.push import push
from made.api.reservations import finish, pop
from made.models import FinishAnswer, FinishRequest, NoSuchJob, PopRequest, PushRequest

with Client(sys.argv[1]) as client:
    push.sync(client=client, body=PushRequest(topic="made", id="1", ttr=60, tags=["a"]))
    job = pop.sync(client=client, body=PopRequest(topic="made", timeout=10)).data
    print(job.id, job.attempt)
    end = FinishRequest(id=job.id, receipt=job.receipt)
    answers = [finish.sync(client=client, body=end) for _ in range(2)]
    print([answer.code for answer in answers], list(map(type, answers)) == [FinishAnswer, NoSuchJob])
"""


@pytest.fixture(scope="module")
def openapi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("openapi") / "openapi.json"
    path.write_text(json.dumps(document(ENDPOINTS)), "utf-8")
    return path


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=GENERATE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.skipif(
    importlib.util.find_spec("openapi_python_client") is None,
    reason="openapi-python-client is not installed",
)
def test_a_python_client_is_made_without_a_warning_and_works(
    openapi: Path, processes: Processes, redis_server: StoreServer, tmp_path: Path
) -> None:
    (tmp_path / "config.yml").write_text("post_hooks: []")  # it is not formatted again
    options = ("--meta=none", "--output-path=made", "--config=config.yml", "--fail-on-warning")
    program = (sys.executable, "-m", "openapi_python_client")
    said = run(*program, "generate", f"--path={openapi}", *options, cwd=tmp_path)
    assert said == "Generating made\n"
    (tmp_path / "round.py").write_text(ROUND)
    server = processes.server(redis_server)
    assert run(sys.executable, "round.py", server.url, cwd=tmp_path) == "1 1\n[0, 2] True\n"
    unnamed = [path.name for path in (tmp_path / "made").rglob("*.py") if "response" in path.name]
    assert unnamed == []


@pytest.mark.skipif(
    shutil.which("openapi-typescript") is None or shutil.which("tsc") is None,
    reason="openapi-typescript and typescript are not installed",
)
def test_types_for_typescript_are_made_without_a_warning(openapi: Path, tmp_path: Path) -> None:
    said = run("openapi-typescript", openapi, "--output=made.ts", cwd=tmp_path)
    assert "warn" not in said.lower()
    assert run("tsc", "--noEmit", "--strict", "made.ts", cwd=tmp_path) == ""
