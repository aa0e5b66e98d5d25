"""docs/howto/autoscaling.md: its queries name existing metrics, Prometheus takes them; HPA and KEDA: test_chart.py."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.processes import Processes, StoreServer

from .markdown import Reader, blocks, examples, read
from .test_metrics_page import SHOWN

PAGE: Final = read("docs/howto/autoscaling.md")
OBJECTS: Final[list[dict[str, Any]]] = [
    yaml.safe_load(block.text) for block in blocks(PAGE, "yaml")
]
SCALED, ADAPTER, HPA = OBJECTS
QUERIES: Final = (
    SCALED["spec"]["triggers"][0]["metadata"]["query"],
    ADAPTER["rules"]["external"][0]["metricsQuery"].replace("<<.LabelMatchers>>", 'topic="order"'),
)


@pytest.mark.parametrize("query", QUERIES)
def test_the_queries_name_metrics_and_labels_that_exist(query: str) -> None:
    found = re.findall(r"(delayqueue_\w+)\{([^}]*)\}", query)
    assert {name for name, _ in found} == {"delayqueue_topic_jobs", "delayqueue_due_soon"}
    for name, labels in found:
        assert set(re.findall(r"(\w+)=", labels)) <= SHOWN[name]


def test_all_of_them_ask_the_same() -> None:
    assert len({"".join(query.split()) for query in QUERIES}) == 1


def test_the_autoscaler_asks_for_what_the_adapter_offers() -> None:
    asked = HPA["spec"]["metrics"][0]["external"]["metric"]["name"]
    assert asked == ADAPTER["rules"]["external"][0]["name"]["as"]


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool (package prometheus) is not installed"
)
@pytest.mark.parametrize("query", QUERIES)
def test_prometheus_takes_the_queries(query: str, tmp_path: Path) -> None:
    rules = {"groups": [{"name": "g", "rules": [{"record": "work", "expr": query}]}]}
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    subprocess.run(["promtool", "check", "rules", tmp_path / "rules.yml"], check=True)


def test_what_topics_answers_is_as_shown(processes: Processes, redis_server: StoreServer) -> None:
    reader = Reader(processes.server(redis_server, language="en"))
    for example in examples(PAGE):
        shown, printed = reader.follow(example)
        assert shown == printed
