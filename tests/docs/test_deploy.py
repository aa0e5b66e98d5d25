"""The manifests and Compose files are valid, name existing settings, and give a server the time that it needs."""

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from delayqueue.config.loading import load
from delayqueue.store.store import PING_S
from delayqueue.web.endpoints import ENDPOINTS
from tests.processes import REPOSITORY

from .markdown import read

DEPLOY: Final = REPOSITORY / "deploy"
MANIFESTS: Final = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
COMPOSE: Final = [REPOSITORY / "docker-compose.yml", *sorted((DEPLOY / "compose").glob("*.yml"))]
STOPPED_S: Final = 12  # a server ends within this time after SIGTERM
PATHS: Final = {endpoint.path for endpoint in ENDPOINTS}


def objects() -> Iterator[dict[str, Any]]:
    for manifest in MANIFESTS:
        yield from yaml.safe_load_all(manifest.read_text("utf-8"))


OBJECTS: Final = {(each["kind"], each["metadata"]["name"]): each for each in objects()}


def test_every_object_is_named_once() -> None:
    assert len(OBJECTS) == len(list(objects()))
    assert {each["apiVersion"] for each in OBJECTS.values()} <= {"v1", "apps/v1", "policy/v1"}


def test_the_settings_are_settings() -> None:
    given = OBJECTS["ConfigMap", "delay-queue"]["data"]
    secret = OBJECTS["Secret", "delay-queue"]["stringData"]
    config = load(None, given | secret)
    assert len(config.redis_cluster) == 3
    assert config.durability == "replica"


def test_selectors_find_their_pods() -> None:
    for kind, name in (("Deployment", "delay-queue"), ("StatefulSet", "redis")):
        labels = OBJECTS[kind, name]["spec"]["template"]["metadata"]["labels"]
        selectors = [
            OBJECTS[kind, name]["spec"]["selector"]["matchLabels"],
            OBJECTS["Service", name]["spec"]["selector"],
            OBJECTS["PodDisruptionBudget", name]["spec"]["selector"]["matchLabels"],
        ]
        assert all(selector.items() <= labels.items() for selector in selectors)


def test_nodes_can_be_drained_while_the_store_is_away_and_no_server_is_ready() -> None:
    budget = OBJECTS["PodDisruptionBudget", "delay-queue"]["spec"]
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_probes_ask_what_there_is_and_stopping_takes_its_time() -> None:
    pod = OBJECTS["Deployment", "delay-queue"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    ports = {port["name"] for port in container["ports"]}
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["path"] in PATHS
        assert container[probe]["httpGet"]["port"] in ports
    # as long as the image's own check, as a busy server is no dead one
    health = re.search(r"HEALTHCHECK .*--timeout=(\d+)s", read("Dockerfile"))
    assert health
    assert container["livenessProbe"]["timeoutSeconds"] == int(health[1])
    # /readyz is awaited, and fails for longer than a call waits for a store that stalls
    readiness = container["readinessProbe"]
    assert readiness["timeoutSeconds"] > PING_S
    failing_s = readiness["periodSeconds"] * (readiness["failureThreshold"] - 1)
    assert failing_s > load(None, {}).redis_read_timeout_ms / 1000
    pause_s = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] >= pause_s + STOPPED_S


def test_the_relay_is_told_what_its_page_tells_to_set() -> None:
    relay = yaml.safe_load((DEPLOY / "compose" / "relay.yml").read_text("utf-8"))["services"][
        "relay"
    ]
    names = re.findall(r"`(DELAYQUEUE_\w+)`", read("docs/howto/outbox.md"))
    assert "DELAYQUEUE_TOKEN" in names
    assert set(names) <= set(relay["environment"])


def test_a_container_of_the_page_has_time_to_stop_whoever_stops_it() -> None:
    started = re.findall(r"docker run -d.*?(?<!\\)$", read("docs/howto/docker.md"), re.M | re.S)
    times = [re.findall(r"--stop-timeout (\d+)", command) for command in started]
    assert len(times) == 2
    assert all(int(time_s) >= STOPPED_S for [time_s] in times)


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_a_compose_file_configures_servers_that_have_time_to_stop(path: Any) -> None:
    services = yaml.safe_load(path.read_text("utf-8"))["services"]
    ours = [each for each in services.values() if each.get("image") == "delay-queue"]
    assert ours
    assert all(int(each["stop_grace_period"].removesuffix("s")) >= STOPPED_S for each in ours)
    servers = [each for each in ours if each.get("command") != ["relay"]]
    for server in servers:
        config = load(None, server["environment"])
        assert not config.embedded
        assert config.durability == ("store" if path.name == "docker-compose.yml" else "replica")


@pytest.mark.parametrize("name", ["sentinel", "cluster"])
def test_the_stores_of_a_compose_file_keep_what_is_acknowledged(name: str) -> None:
    services = yaml.safe_load((DEPLOY / "compose" / f"{name}.yml").read_text("utf-8"))["services"]
    servers = [each for each in services.values() if each.get("image") == "delay-queue"]
    commands = [_words(each.get("command", ())) for each in services.values()]
    stores = [command for command in commands if command.startswith("redis-server")]
    _assert_kept(stores, " ".join(commands), servers[0]["environment"])


def test_the_store_of_the_manifests_keeps_what_is_acknowledged() -> None:
    [store] = OBJECTS["StatefulSet", "redis"]["spec"]["template"]["spec"]["containers"]
    text = (DEPLOY / "kubernetes" / "redis.yaml").read_text("utf-8")
    _assert_kept([_words(store["command"])], text, OBJECTS["ConfigMap", "delay-queue"]["data"])


def _words(command: Any) -> str:
    return command if isinstance(command, str) else " ".join(command)


def _assert_kept(stores: list[str], text: str, environment: dict[str, str]) -> None:
    """As docs/durability.md says: an append-only file on each, and as many replicas as must have a job."""
    assert stores
    assert all("--appendonly yes" in each for each in stores)
    assert all("--maxmemory-policy noeviction" in each for each in stores)
    asked = re.search(r"--cluster-replicas (\d+)", text)
    replicas = int(asked[1]) if asked else sum("--replicaof" in each for each in stores)
    assert load(None, environment).redis_min_replicas == replicas
