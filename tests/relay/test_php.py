"""The PHP package's outbox, through PDO and through the connections of Laravel and Doctrine."""

import json
import subprocess
from dataclasses import asdict
from typing import Any, Final

import pytest

from delayqueue import outbox as helpers
from delayqueue.client import Job
from delayqueue.relay.row import OPTIONS
from tests.php.project import Project, needs, needs_debian
from tests.processes import REPOSITORY, Processes, QueueServer, StoreServer
from tests.relay.conftest import Outbox

MINUTE_S: Final = 60
PROGRAM: Final = REPOSITORY / "tests/relay/outbox.php"
LIBRARIES: Final = {
    "pdo": (),
    "eloquent": ("Illuminate/Database/autoload.php",),
    "doctrine": ("Doctrine/DBAL/autoload.php",),
}
DRIVERS: Final = {"mariadb": ("pdo_mysql", "php-mysql"), "postgresql": ("pdo_pgsql", "php-pgsql")}
NAMES: Final = {"mariadb": "test", "postgresql": "postgres"}  # of the databases

OWN: Final = {"id", "created", "history"}  # what no two jobs have in common


@pytest.fixture(scope="module")
def server(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(redis_server, strict="yes", calls="yes", bucket_size=3)


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> str:
    needs_debian(*LIBRARIES[request.param])
    return str(request.param)


@pytest.fixture(scope="module")
def project(library: str, tmp_path_factory: pytest.TempPathFactory) -> Project:
    needs("php")
    loads = {f"library/{library}": ("1.0", LIBRARIES[library])} if LIBRARIES[library] else {}
    folder = tmp_path_factory.mktemp(library)
    return Project(folder, "delay-queue/client", *loads, libraries=loads)


def needs_driver(kind: str) -> None:
    """Skip the test if PHP has no driver for the database."""
    extension, package = DRIVERS[kind]
    modules = subprocess.run(["php", "-m"], capture_output=True, text=True, check=True).stdout
    if extension not in modules.split():
        pytest.skip(f"PHP has no {extension}: apt-get install {package}")


def test_what_php_commits_is_what_python_commits(
    outbox: Outbox, library: str, project: Project
) -> None:
    kind, topic = outbox.database.kind, outbox.topic
    needs_driver(kind)
    login = {"kind": kind, "port": outbox.database.port, "user": "root", "name": NAMES[kind]}
    project.run("php", str(PROGRAM), library, json.dumps(login), outbox.table, topic)

    every = Job(
        topic=topic,
        body={"order": 7, "question": "où ? 订单"},
        id=f"{{customer-7}}{topic}-python",
        due=4000000000.125,
        ttr="1m",
        tags=["user:7", "it's ?"],
        retry=["1m", 2],
        if_exists="replace",
        max_wait="10m",
        retain="1h",
        expire="1d",
        priority=7,
        group="customer-7",
        call={"url": "https://example.com/", "headers": {}, "timeout": 9},
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )
    connection = outbox.database.connect()
    helpers.push(connection, every, table=outbox.table)
    connection.commit()
    connection.close()
    first, later, star, unnamed, *_, last = outbox.rows(
        "id, topic, body, delay, due, options, cancel, cancel_tag"
    )
    assert later == (f"{topic}-later", topic, "", 5400, None, '{"ttr":60}', 0, None)
    made = [star[0], unnamed[0]]
    assert [job_id.partition("}")[0] for job_id in made] == ["{customer-8"] * 2
    options = [json.loads(row[5]) for row in (first, last)]
    assert options[0] == options[1]
    assert options[0].keys() == OPTIONS
    assert outbox.once().returncode == 0
    php, python = (details(outbox, row[0]) for row in (first, last))
    # max_wait counts from each one's push, and the delay from each one's answer
    for each in ("due", "expires", "delay"):
        assert abs(php.pop(each) - python.pop(each)) < MINUTE_S
    assert php == python
    assert php["state"] == "delayed"
    assert [outbox.state(job_id) for job_id in made] == ["delayed"] * 2
    assert outbox.state(f"{topic}-later") == "delayed"
    assert outbox.state(f"{topic}-rolled-back") is None
    ended = [outbox.state(f"{topic}-{each}") for each in ("cancelled", "tagged")]
    assert ended == ["cancelled", "cancelled"]


def details(outbox: Outbox, job_id: str) -> dict[str, Any]:
    """All that the server says about the job, but for who it is and when it came."""
    found = outbox.client.get(job_id, options=True)
    assert found is not None
    return {name: value for name, value in asdict(found).items() if name not in OWN}
