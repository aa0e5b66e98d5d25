"""The image runs without root and without a shell; Compose files name only what exists."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from delayqueue import __version__
from tests.processes import REPOSITORY

from .markdown import read
from .test_deploy import COMPOSE

IMAGE: Final = (REPOSITORY / "Dockerfile").read_text("utf-8").replace("\\\n", " ")


def steps(instruction: str) -> list[str]:
    """The arguments of each of these instructions."""
    return re.findall(rf"^\s*{instruction} +(.+)$", IMAGE, re.MULTILINE)


def test_every_step_and_the_program_are_run_without_a_shell() -> None:
    for command in [*steps("RUN"), *steps("ENTRYPOINT"), *steps("CMD")]:
        assert isinstance(json.loads(command), list)


def test_the_last_stage_is_not_root_and_keeps_its_data_in_a_volume() -> None:
    last = IMAGE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, re.MULTILINE)
    assert re.search(r"^VOLUME /data$", last, re.MULTILINE)
    assert "DELAYQUEUE_DATA_DIR=/data" in last
    assert "HEALTHCHECK" in last


def test_a_command_in_a_container_finds_the_program() -> None:
    [program] = map(json.loads, steps("ENTRYPOINT"))
    assert f'PATH="{Path(program[0]).parent}:${{PATH}}"' in IMAGE


def test_its_labels_say_what_it_is_and_where_it_is_from() -> None:
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', IMAGE))
    assert labels.pop("description")
    assert labels == {
        "title": "delay-queue",
        "licenses": "MIT",
        "version": __version__,
        "source": "${SOURCE}",
        "revision": "${REVISION}",
    }
    (build,) = re.findall(r"docker build (?:.*\\\n)*.*", read("Makefile"))
    assert {"SOURCE", "REVISION"} == set(re.findall(r"--build-arg (\w+)=", build))
    assert {'SOURCE=""', 'REVISION=""', "PIP_INDEX_URL"} == set(steps("ARG"))


def test_a_store_may_take_minutes_to_load_its_data() -> None:
    services = [
        each
        for path in COMPOSE
        for each in yaml.safe_load(path.read_text("utf-8"))["services"].values()
    ]
    checks = [each["healthcheck"] for each in services if "healthcheck" in each]
    loading = [check for check in checks if "redis-cli ping" in str(check.get("test"))]
    assert len(loading) == 9
    assert {check["start_period"] for check in loading} == {"10m"}
    assert "--start-period=10m" in IMAGE


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_a_compose_file_names_what_it_declares(path: Path) -> None:
    compose: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    services, volumes = compose["services"], compose.get("volumes", {})
    for service in services.values():
        for other, how in service.get("depends_on", {}).items():
            assert how["condition"] != "service_healthy" or "healthcheck" in services[other]
        for mount in service.get("volumes", []):
            assert mount.partition(":")[0] in volumes
        assert set(service.get("networks", [])) <= set(compose.get("networks", {}))
        if service.get("image") == "delay-queue":
            # a file that is added to another one, as relay.yml, has the image of that
            assert (
                "build" not in service or (path.parent / service["build"] / "Dockerfile").exists()
            )
        elif "restart" in service:
            assert {"healthcheck", "volumes", "stop_grace_period"} <= set(service)
