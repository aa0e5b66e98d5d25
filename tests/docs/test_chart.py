"""The Helm chart renders what deploy/kubernetes has, from settings that exist, and Kubernetes accepts it.

So do Kubernetes and KEDA what the page on autoscaling shows. Without helm or kubeconform, the tests that need it are
skipped: `make chart-tools` builds both.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from delayqueue import __version__
from delayqueue.config.config import OPTIONS
from delayqueue.config.loading import load
from tests.processes import REPOSITORY

from .markdown import read
from .test_autoscaling_page import HPA, SCALED
from .test_deploy import MANIFESTS, OBJECTS

CHART: Final = REPOSITORY / "deploy" / "helm" / "delay-queue"
VALUES: Final[dict[str, Any]] = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
PATH: Final = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
KUBERNETES, KEDA = (
    re.findall(rf"^{name} := v(.+)$", read("Makefile"), re.MULTILINE)[0]
    for name in ("KUBERNETES", "KEDA")
)
REDIS: Final = "config.DELAYQUEUE_REDIS_HOST=redis:6379"
ALL: Final = (
    *(REDIS, "config.DELAYQUEUE_BUCKET_SIZE=64"),
    *("existingSecret=tokens", "serviceMonitor.enabled=true", "serviceMonitor.tokenSecret=view"),
    *("podAnnotations.a=b", "nodeSelector.disk=ssd", "imagePullSecrets[0].name=registry"),
    *("probeScheme=HTTPS", "extraVolumes[0].name=tls", "extraVolumes[0].secret.secretName=cert"),
    *("extraVolumeMounts[0].name=tls", "extraVolumeMounts[0].mountPath=/tls"),
)
INT_OR_STRING: Final = {"oneOf": [{"type": "integer"}, {"type": "string"}]}


def helm(verb: str, *values: str, name: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    program = shutil.which("helm", path=PATH)
    if program is None:
        pytest.skip("helm is not installed: make chart-tools")
    settings = [word for value in values for word in ("--set", value)]
    command = [program, verb, *name, str(CHART), *settings, f"--kube-version={KUBERNETES}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def rendered(*values: str) -> str:
    done = helm("template", *values, name=("try",))
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(*values: str) -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all(rendered(*values))}


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_every_secret_is_refused_where_everybody_can_read_it() -> None:
    """A URL of Redis need not have a password."""
    template = (CHART / "templates" / "configmap.yaml").read_text("utf-8")
    [refused] = re.findall(r"range \$secret := list (.+?) }}", template)
    secrets = {option.variable for option in OPTIONS.values() if option.secret}
    assert set(refused.replace('"', "").split()) == secrets - {"DELAYQUEUE_REDIS_URL"}


def test_every_value_is_explained_has_a_type_and_is_used() -> None:
    text = (CHART / "values.yaml").read_text("utf-8")
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    templates = "".join(path.read_text("utf-8") for path in (CHART / "templates").iterdir())
    assert set(VALUES) | {"global"} == set(schema["properties"])
    for name in VALUES:
        assert f".Values.{name}" in templates
    explained = re.findall(r"^# .*\n(?:(?:# .*|)\n)*(\w+):", text, re.MULTILINE)
    unexplained = set(VALUES) - set(explained)
    # its own fields, or its neighbours' comment, explain these
    assert unexplained == {"image", "service", "resources", "serviceMonitor", "nodeSelector"} | {
        "tolerations",
        "affinity",
        "extraVolumeMounts",
    }


def test_helm_finds_nothing_wrong() -> None:
    done = helm("lint", REDIS)
    assert done.returncode == 0, done.stdout
    assert "WARNING" not in done.stdout + done.stderr


def test_its_pods_are_those_of_the_manifests() -> None:
    made = objects(REDIS)["Deployment"]["spec"]
    ours = OBJECTS["Deployment", "delay-queue"]["spec"]
    assert (made["replicas"], made["strategy"]) == (ours["replicas"], ours["strategy"])
    made, ours = made["template"]["spec"], ours["template"]["spec"]
    [container], [our_container] = made.pop("containers"), ours["containers"]
    assert container.pop("image") == f"delay-queue:{__version__}"
    assert container.pop("imagePullPolicy") == "IfNotPresent"
    assert container.pop("envFrom")[0] == {"configMapRef": {"name": "try-delay-queue"}}
    its_own = {"image", "envFrom"}
    assert container == {k: v for k, v in our_container.items() if k not in its_own}
    assert made.pop("enableServiceLinks") is False
    labels = made["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]
    assert labels.pop("app.kubernetes.io/instance") == "try"
    assert made == {name: value for name, value in ours.items() if name != "containers"}


def test_its_pods_are_evicted_as_those_of_the_manifests() -> None:
    made, ours = (
        objects(REDIS)["PodDisruptionBudget"],
        OBJECTS["PodDisruptionBudget", "delay-queue"],
    )
    assert made["spec"] | {"selector": {}} == ours["spec"] | {"selector": {}}


def test_its_settings_are_settings_and_numbers_stay_as_they_are() -> None:
    given = {"DELAYQUEUE_REDIS_HOST": "redis:6379", "DELAYQUEUE_MAX_BODY": 100_000_000}
    as_of_a_file = ("try", "--set-json", f"config={json.dumps(given)}")  # numbers become floats
    done = helm("template", name=as_of_a_file)
    made = {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}
    config = load(None, made["ConfigMap"]["data"])
    assert (str(config.redis_host), config.max_body_bytes) == ("redis:6379", 100_000_000)


@pytest.mark.parametrize(
    ("secret", "where"),
    [
        ({"DELAYQUEUE_REDIS_URL": "redis://:x@redis:6379/1"}, "redis:6379"),
        ({"DELAYQUEUE_REDIS_HOST": "redis:6379"}, "redis:6379"),
        (
            {"DELAYQUEUE_AUTH_TOKENS": "admin:0123456789abcdef"},
            "neither-config-nor-existingsecret-names-redis:6379",
        ),
    ],
)
def test_a_secret_alone_can_name_redis_and_without_any_no_pod_has_a_store_of_its_own(
    secret: dict[str, str], where: str
) -> None:
    made = objects("existingSecret=mine")
    [container] = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    sources = [source for each in container["envFrom"] for source in each]
    assert sources == ["configMapRef", "secretRef"]  # of a variable in both, the last one counts
    config = load(None, made["ConfigMap"]["data"] | secret)
    assert not config.embedded
    assert where in f"{config.redis_url}{config.redis_host}"


def test_config_takes_a_url_of_redis_without_a_password_and_where_spans_go() -> None:
    url = "config.DELAYQUEUE_REDIS_URL=redis://redis:6379/1"
    made = objects(url, "config.OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318")
    given = made["ConfigMap"]["data"]
    assert load(None, given).redis_url == "redis://redis:6379/1"
    assert given["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4318"


def test_certificates_are_mounted_and_probes_follow() -> None:
    pod = objects(*ALL)["Deployment"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["volumeMounts"] == [{"name": "tls", "mountPath": "/tls"}]
    assert pod["volumes"] == [{"name": "tls", "secret": {"secretName": "cert"}}]
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"


def test_prometheus_finds_the_servers_in_one_way_by_the_name_that_the_alerts_know() -> None:
    values = (*ALL, "serviceMonitor.tlsConfig.serverName=queue")
    made = objects(*values)
    [endpoint] = made["ServiceMonitor"]["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["tlsConfig"]) == ("https", {"serverName": "queue"})
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "delayqueue"}]
    assert 'up{job="delayqueue"}' in read("contrib/prometheus/delayqueue.rules.yml")
    assert found_by_annotations(made) == {}
    ours = {"prometheus.io/scrape": "true", "prometheus.io/port": "9277"}
    assert found_by_annotations(objects(REDIS)) == ours | {"prometheus.io/scheme": "http"}
    own = objects(REDIS, r"podAnnotations.prometheus\.io/scrape=no")
    assert found_by_annotations(own)["prometheus.io/scrape"] == "no"


def found_by_annotations(made: dict[str, Any]) -> dict[str, str]:
    found = made["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    return {name: value for name, value in found.items() if name.startswith("prometheus.io/")}


@pytest.mark.parametrize(
    ("value", "expected"), [("0", 0), ("25%", "25%"), ("", None), ("null", None)]
)
def test_only_an_empty_number_of_pods_that_may_be_away_is_none(
    value: str, expected: object
) -> None:
    budget = objects(REDIS, f"maxUnavailable={value}").get("PodDisruptionBudget")
    assert (budget and budget["spec"]["maxUnavailable"]) == expected


def test_selectors_find_their_pods() -> None:
    made = objects(*ALL)
    labels = made["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        made["Deployment"]["spec"]["selector"]["matchLabels"],
        made["Service"]["spec"]["selector"],
        made["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels.items() for selector in selectors)
    monitored = made["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
    assert monitored.items() <= made["Service"]["metadata"]["labels"].items()


@pytest.mark.parametrize(
    ("values", "way_out"),
    [
        ((), "say where Redis is"),
        ((REDIS, "config.DELAYQUEUE_AUTH_TOKENS=admin:x"), "existingSecret"),
        ((REDIS, "config.DELAYQUEUE_REDIS_PASSWORD=x"), "existingSecret"),
        ((REDIS, "config.DELAYQUEUE_REDIS_SENTINEL_PASSWORD=x"), "existingSecret"),
        ((REDIS, "config.DELAYQUEUE_CALL_SECRET=x"), "existingSecret"),
        (("existingSecret=mine", "config.DELAYQUEUE_REDIS_URL=redis://:x@redis"), "existingSecret"),
        ((REDIS, "probeScheme=TCP"), "probeScheme"),
        ((REDIS, "config.REDIS_DB=1"), "REDIS_DB"),
        ((REDIS, "replica=2"), "replica"),
    ],
)
def test_a_mistake_is_named(values: tuple[str, ...], way_out: str) -> None:
    done = helm("template", *values, name=("try",))
    assert done.returncode != 0
    assert way_out in done.stderr


def test_kubernetes_takes_all_of_it(tmp_path: Path) -> None:
    made = [rendered(REDIS), rendered(*ALL), *(path.read_text("utf-8") for path in MANIFESTS)]
    assert "Errors: 0, Skipped: 1" in conforms("\n---\n".join(made), tmp_path)


def test_kubernetes_and_keda_take_what_the_page_on_autoscaling_shows(tmp_path: Path) -> None:
    said = conforms(yaml.safe_dump_all([HPA, SCALED]), tmp_path)
    assert "Valid: 2, Invalid: 0, Errors: 0, Skipped: 0" in said


def conforms(text: str, folder: Path) -> str:
    """What kubeconform says of objects that are as their descriptions want them."""
    program = shutil.which("kubeconform", path=PATH)
    if program is None or shutil.which("go") is None:
        pytest.skip("kubeconform is not installed: make chart-tools")
    write_schemas(folder, {each["kind"] for each in yaml.safe_load_all(text) if each})
    where = f"{folder}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    # of Prometheus' operator, not of Kubernetes
    options = ["-strict", "-summary", "-skip=ServiceMonitor", "-schema-location", where]
    done = subprocess.run(
        [program, *options], input=text, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def module(path: str) -> Path:
    """The folder of a Go module that was downloaded before."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", path],
        cwd="/",
        env=os.environ | {"GOPROXY": "off"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"{path} is not here: make chart-tools")
    return Path(json.loads(done.stdout)["Dir"])


def write_schemas(folder: Path, kinds: set[str]) -> None:
    """The schemas of these kinds, from Kubernetes' and KEDA's own descriptions of their APIs."""
    described = module(f"k8s.io/kubernetes@v{KUBERNETES}") / "api" / "openapi-spec" / "swagger.json"
    definitions = json.loads(described.read_text("utf-8"))["definitions"]
    for name, definition in definitions.items():
        if definition.get("format") == "int-or-string":
            definitions[name] = INT_OR_STRING
        elif "properties" in definition:
            definition["additionalProperties"] = False
    for name, definition in definitions.items():
        for known in definition.get("x-kubernetes-group-version-kind", ()):
            if known["kind"] in kinds:
                parts = [known["kind"], known["group"].partition(".")[0], known["version"]]
                path = folder / ("-".join(filter(None, parts)).lower() + ".json")
                path.write_text(json.dumps(closure(name, definitions)), "utf-8")
    if "ScaledObject" in kinds:
        bases = module(f"github.com/kedacore/keda/v2@v{KEDA}") / "config" / "crd" / "bases"
        text = (bases / "keda.sh_scaledobjects.yaml").read_text("utf-8")
        [version] = yaml.safe_load(text)["spec"]["versions"]
        schema = close(version["schema"]["openAPIV3Schema"])
        (folder / "scaledobject-keda-v1alpha1.json").write_text(json.dumps(schema), "utf-8")


def close(schema: Any) -> Any:
    """The schema, whose objects have no other properties than those that it names."""
    if isinstance(schema, dict):
        if "properties" in schema:
            schema["additionalProperties"] = False
        for each in schema.values():
            close(each)
    return schema


def closure(name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """A schema with the definitions that it needs, and no others."""
    needed: dict[str, Any] = {}
    names = [name]
    while names:
        if (each := names.pop()) not in needed:
            needed[each] = definitions[each]
            names += re.findall(r'"#/definitions/([^"]+)"', json.dumps(definitions[each]))
    return {"$ref": f"#/definitions/{name}", "definitions": needed}
