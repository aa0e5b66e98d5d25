"""docs/metrics.md, the dashboard and the alert rules name the existing metrics; promtool accepts the rules."""

import json
import re
import shutil
from typing import Any, Final

import pytest

from delayqueue.domain.limit import Limit
from delayqueue.engine.workers import WorkerCounts
from delayqueue.metrics import COUNTERS, EVENTS, GAUGES, HISTOGRAMS, REPAIRED, Metrics
from delayqueue.store.census import TopicView
from delayqueue.store.types import Health
from delayqueue.web.metrics import Figures, StoreFigures, TopicFigures, process_figures
from tests.processes import REPOSITORY

from .markdown import ended, read

PAGE: Final = read("docs/metrics.md")
RULES: Final = read("contrib/prometheus/delayqueue.rules.yml")
DASHBOARD: Final[dict[str, Any]] = json.loads(read("contrib/grafana/delayqueue.json"))
NAME: Final = re.compile(r"\b(?:delayqueue|process)_\w+")
ALERT: Final = re.compile(r"^ +- alert: (\w+)$", re.MULTILINE)


def shown() -> dict[str, set[str]]:
    """The names of a server's metrics, and the labels of each, as scraped."""
    metrics = Metrics()
    for counter in COUNTERS:
        metrics.count(counter, *counter.labels)
    for histogram in HISTOGRAMS:
        metrics.histogram(histogram, *histogram.labels).observe(1)
    for gauge in GAUGES:
        metrics.show(gauge, lambda: 1)
    store = StoreFigures(
        TopicFigures(
            [TopicView("t", oldest_age_ms=1, limit=Limit(max_jobs=1))], None, 1, {"t": (1, 2, 3)}
        ),
        Health(1, 1, durable=True),
        1,
        1,
        WorkerCounts(0, 0),
    )
    families = Figures({"1": metrics.snapshot() | process_figures()}, store).collect()
    suffixes = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
    return {
        family.name + suffix: {label for sample in family.samples for label in sample.labels}
        for family in families
        for suffix in suffixes[family.type]
    }


SHOWN: Final = shown()
OF_RELAYS: Final = {
    "delayqueue_relay_failed_rows": set[str](),
    "delayqueue_relay_oldest_seconds": set[str](),
}
PLAIN: Final = {re.sub("_(bucket|sum|count)$", "", name) for name in SHOWN}


def expressions() -> list[str]:
    """All queries of the dashboard and the rules."""
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    rules = re.findall(r"^ +expr: (?:>\n)?(.*?)^ +(?:for|labels):", RULES, re.MULTILINE | re.DOTALL)
    assert len(rules) == len(ALERT.findall(RULES))
    return panels + rules


def test_the_page_explains_every_metric_and_no_other() -> None:
    rows = re.findall(r"^\| (`(?:delayqueue|process)_.*?) \|", PAGE, re.MULTILINE)
    assert {name for row in rows for name in NAME.findall(row)} == PLAIN


@pytest.mark.parametrize("word", [*EVENTS, *REPAIRED])
def test_the_page_explains_every_event(word: str) -> None:
    assert f"`{word}`" in PAGE


@pytest.mark.parametrize("expression", expressions())
def test_a_query_names_metrics_and_labels_that_exist(expression: str) -> None:
    names = set(NAME.findall(expression))
    known = SHOWN | OF_RELAYS  # tests/relay reads those
    assert names <= set(known)
    labels = {"job", "instance", "le"}.union(*(known[name] for name in names))
    selected = re.findall(r"(\w+)(?:=~|!=|=)\"", expression)
    grouped = [part for by in re.findall(r"by \(([^)]*)\)", expression) for part in by.split(", ")]
    assert {*selected, *grouped} <= labels


@pytest.mark.parametrize("alert", ALERT.findall(RULES))
def test_every_alert_is_tried(alert: str) -> None:
    assert f"alertname: {alert}\n" in read("contrib/prometheus/delayqueue.test.yml")


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool (package prometheus) is not installed"
)
@pytest.mark.parametrize(
    ("verb", "file"), [("check", "delayqueue.rules.yml"), ("test", "delayqueue.test.yml")]
)
def test_promtool_accepts_the_rules_and_they_fire(verb: str, file: str) -> None:
    done = ended(["promtool", verb, "rules", file], folder=REPOSITORY / "contrib/prometheus")
    assert done.returncode == 0, done
