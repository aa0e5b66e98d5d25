"""Counters and histograms: what they count, and that they survive the way to another process."""

import asyncio
import json
from pathlib import Path
from time import monotonic

import pytest
from prometheus_client.parser import text_string_to_metric_families

from delayqueue.domain.limit import Limit
from delayqueue.engine.workers import WorkerCounts
from delayqueue.metrics import (
    HANDLING,
    REQUESTS,
    SCRIPT_SECONDS,
    WAITING_POLLS,
    Histogram,
    Metrics,
    Snapshot,
)
from delayqueue.server.process import NONE_DECLARED, Process
from delayqueue.store.census import TopicView
from delayqueue.store.types import Health
from delayqueue.web.metrics import Figures, StoreFigures, TopicFigures, exposition, process_figures
from tests.figures import Samples, samples_of

HEALTH = Health(0, 0, durable=True)
STUCK_S = 40.0


def holding(*topics: TopicView, most: int = 9, health: Health = HEALTH) -> StoreFigures:
    figures = asyncio.run(TopicFigures.of(topics, most))
    return StoreFigures(figures, health, subscribers=2, schedules=3, workers=WorkerCounts(0, 0))


NOBODY = holding()


@pytest.mark.parametrize(
    ("seconds", "place"),
    [
        (0, 0),
        (0.5, 0),
        (1, 0),  # an upper end belongs to its bucket
        (1.001, 1),
        (10, 1),
        (10.1, 2),
        (float("inf"), 2),
    ],
)
def test_a_value_falls_into_one_bucket(seconds: float, place: int) -> None:
    histogram = Histogram((1.0, 10.0))
    histogram.observe(seconds)
    assert histogram.counts == [int(place == n) for n in range(3)]


def shown(workers: dict[str, Metrics], store: StoreFigures | None = NOBODY) -> Samples:
    """What Prometheus reads, after the figures went through JSON, as between workers."""
    figures = {name: json.loads(json.dumps(each.snapshot())) for name, each in workers.items()}
    return samples_of(exposition(Figures(figures, store), "")[0].decode())


@pytest.mark.parametrize("version", ["latest", "1..0", "", "1.0.0;escaping=x", "9"])
@pytest.mark.parametrize("kind", ["application/openmetrics-text", "text/plain"])
def test_a_version_that_there_is_not_is_answered_in_another_one(kind: str, version: str) -> None:
    text, content_type = exposition(Figures({}, NOBODY), f"{kind};version={version}")
    assert b"delayqueue_store_up" in text
    assert content_type.startswith(("text/plain", "application/openmetrics-text"))


def test_what_was_counted_is_shown_for_each_worker() -> None:
    one, two = Metrics(), Metrics()
    one.count_event("pushed", "t", 2)
    two.count_event("pushed", "t", 1)
    two.count(REQUESTS, "/push", 0)
    one.show(WAITING_POLLS, lambda: 7)
    samples = shown({"1": one, "2": two})
    assert samples.one("delayqueue_job_events_total", event="pushed", worker="1") == 2
    assert samples.one("delayqueue_job_events_total", event="pushed", worker="2") == 1
    assert samples.sum("delayqueue_job_events_total", event="finished") == 0
    assert samples.rows("delayqueue_requests_total") == {("0", "/push", "2"): 1}
    assert samples.rows("delayqueue_waiting_polls") == {("1",): 7}


def test_a_histogram_is_shown_with_its_buckets_added_up() -> None:
    metrics = Metrics()
    for seconds in (0.001, 0.02, 0.02, 100_000):
        metrics.histogram(HANDLING).observe(seconds)
    samples = shown({"1": metrics})
    assert samples.one("delayqueue_handling_seconds_count") == 4
    assert samples.one("delayqueue_handling_seconds_sum") == pytest.approx(100_000.041)
    assert samples.one("delayqueue_handling_seconds_bucket", le="0.005") == 1
    assert samples.one("delayqueue_handling_seconds_bucket", le="0.025") == 3
    assert samples.one("delayqueue_handling_seconds_bucket", le="86400.0") == 3
    assert samples.one("delayqueue_handling_seconds_bucket", le="+Inf") == 4
    calls = metrics.histogram(SCRIPT_SECONDS, "pop")
    assert shown({"1": metrics}).rows("delayqueue_script_seconds_count") == {}
    calls.observe(0.1)
    assert shown({"1": metrics}).one("delayqueue_script_seconds_count", script="pop") == 1


def test_topics_beyond_the_limit_count_as_other() -> None:
    topics = [
        TopicView(name, delayed=1, ready=2, oldest_age_ms=age_ms)
        for name, age_ms in (("a", 100), ("b", None), ("c", 5000), ("d", 4000), ("other", 1))
    ]
    samples = shown({}, holding(*topics, health=Health(5, 9, durable=False), most=2))
    delayed = {
        topic: n
        for (state, topic), n in samples.rows("delayqueue_topic_jobs").items()
        if state == "delayed"
    }
    assert delayed == {"a": 1, "b": 1, "other": 3}
    assert samples.rows("delayqueue_topic_oldest_ready_seconds") == {("a",): 0.1, ("other",): 5}
    assert samples.one("delayqueue_topics") == 5
    assert samples.one("delayqueue_store_durable") == 0


def test_events_of_topics_beyond_the_limit_count_as_other() -> None:
    metrics = Metrics()
    metrics.most_topics = 2
    for topic in ("b", "a", "c", "d", "b"):
        metrics.count_event("pushed", topic, 1)
    events, name = shown({"1": metrics}), "delayqueue_job_events_total"
    pushed = {topic: events.one(name, event="pushed", topic=topic) for topic in ("a", "b", "other")}
    assert pushed == {"a": 1, "b": 2, "other": 2}
    assert events.sum(name) == 5
    assert metrics.events("pushed") == 5


def test_the_first_event_that_an_alert_counts_is_an_increase() -> None:
    metrics, name = Metrics(), "delayqueue_job_events_total"
    topics = TopicView("t"), TopicView("u")
    metrics.count_event("buried", "u", 1)
    samples = shown({"1": metrics}, holding(*topics, most=2))
    assert samples.one(name, topic="t", event="buried") == 0
    assert samples.one(name, topic="u", event="buried") == 1
    beyond = shown({"1": metrics}, holding(*topics, TopicView("other"), most=0))
    assert beyond.one(name, topic="other", event="lost") == 0
    metrics.most_topics = 1  # it has met more topics than there are now
    metrics.count_event("pushed", "gone", 1)
    assert shown({"1": metrics}).one(name, topic="other", event="lost") == 0


def test_a_topic_that_is_paused_is_shown_and_makes_others_no_older() -> None:
    topics = [
        TopicView(name, ready=1, oldest_age_ms=age_ms, paused_until_ms=until_ms)
        for name, age_ms, until_ms in (("a", 9000, 0), ("b", 2000, None), ("c", 7000, 5))
    ]
    samples = shown({}, holding(*topics, most=1))
    assert samples.rows("delayqueue_topic_paused") == {("a",): 1}
    assert samples.rows("delayqueue_topic_oldest_ready_seconds") == {("a",): 9, ("other",): 2}
    assert shown({}, holding(*topics, most=2)).one("delayqueue_topic_paused", topic="b") == 0


def test_a_topic_shows_how_many_jobs_it_may_have() -> None:
    limits = {"a": Limit(max_jobs=5), "b": Limit(max_jobs=7, when_full="drop_oldest")}
    topics = [TopicView(name, ready=1, limit=limit) for name, limit in limits.items()]
    samples = shown({}, holding(*topics, TopicView("c", limit=Limit(rate=1))))
    name = "delayqueue_topic_max_jobs"
    assert samples.one(name, topic="a", when_full="refuse") == 5
    assert samples.one(name, topic="b", when_full="drop_oldest") == 7
    assert len(samples.rows(name)) == 2


def test_each_worker_shows_what_its_process_uses() -> None:
    figures = json.loads(json.dumps(process_figures()))
    families = Figures({"1": figures, "2": figures}, NOBODY)
    samples = samples_of(exposition(families, "")[0].decode())
    for name in ("cpu_seconds_total", "resident_memory_bytes", "open_fds"):
        rows = samples.rows(f"process_{name}")
        assert set(rows) == {("1",), ("2",)}
        assert rows["1",] > 0


@pytest.mark.parametrize("topic", ['a"b', "a\\b", "a\nb", "订单", "{}"])
def test_any_topic_can_be_shown(topic: str) -> None:
    samples = shown({}, holding(TopicView(topic, ready=3)))
    assert samples.one("delayqueue_topic_jobs", topic=topic, state="ready") == 3


def test_a_store_that_does_not_answer_is_shown_as_down() -> None:
    samples = shown({}, store=None)
    assert samples.one("delayqueue_store_up") == 0
    assert samples.rows("delayqueue_topic_jobs") == {}


def process(folder: Path | None, number: int = 1) -> Process:
    return Process([0.0, 0.0], [NONE_DECLARED], number, folder)


def nothing() -> Snapshot:
    return Metrics().snapshot()


async def test_workers_tell_each_other_their_figures(tmp_path: Path) -> None:
    metrics = Metrics()
    metrics.count_event("pushed", "t", 5)
    one, two = process(tmp_path, 1), process(tmp_path, 2)
    async with one.sharing_figures(nothing), two.sharing_figures(metrics.snapshot):
        found = await one.all_figures(nothing)
        assert found["2"] == json.loads(json.dumps(metrics.snapshot()))
        assert set(found) == {"1", "2"}


async def test_a_worker_that_is_gone_is_left_out_until_its_successor_comes(tmp_path: Path) -> None:
    one, two = process(tmp_path, 1), process(tmp_path, 2)
    async with one.sharing_figures(nothing):
        async with two.sharing_figures(nothing):
            pass
        (tmp_path / "2").touch()  # as a killed worker leaves it
        assert set(await one.all_figures(nothing)) == {"1"}
        async with two.sharing_figures(nothing):
            assert set(await one.all_figures(nothing)) == {"1", "2"}


async def test_a_worker_that_is_stuck_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delayqueue.server.process.ANSWER_S", 0.05)
    held: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_unix_server(lambda _, writer: held.append(writer), tmp_path / "2")
    async with silent:
        assert set(await process(tmp_path).all_figures(nothing)) == {"1"}
        starting = Process([monotonic(), 0], [NONE_DECLARED], 1, tmp_path)
        assert set(await starting.all_figures(nothing)) == {"1"}
        stuck = Process([monotonic(), monotonic() - STUCK_S], [NONE_DECLARED], 1, tmp_path)
        figures = Figures(await stuck.all_figures(Metrics().snapshot), NOBODY)
        samples = samples_of(exposition(figures, "")[0].decode())
        assert samples.one("delayqueue_tick_age_seconds", worker="2") >= STUCK_S
        for writer in held:  # since Python 3.12, the end of the server waits for it
            writer.close()


async def test_a_folder_that_takes_no_socket_keeps_nobody_from_serving(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    deep = tmp_path / ("d" * 120)  # too long for the path of a socket
    deep.mkdir()
    async with process(deep).sharing_figures(nothing):
        assert set(await process(deep).all_figures(nothing)) == {"1"}
    assert "set TMPDIR" in caplog.text


async def test_a_folder_that_is_gone_leaves_the_figures_of_the_process_that_is_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Something may tidy up in TMPDIR. The alert for a process that is stuck needs no folder."""
    gone = tmp_path / "gone"
    assert set(await process(gone).all_figures(nothing)) == {"1"}
    pulses = [monotonic(), monotonic() - STUCK_S]
    serving = Process(pulses, [NONE_DECLARED], 1, gone)
    figures = Figures(await serving.all_figures(Metrics().snapshot), NOBODY)
    samples = samples_of(exposition(figures, "")[0].decode())
    assert samples.one("delayqueue_tick_age_seconds", worker="2") >= STUCK_S
    assert f"worker 2 does not send its figures at {gone}/2: FileNotFoundError" in caplog.text


async def test_a_server_of_one_process_has_only_its_own_figures() -> None:
    async with process(None).sharing_figures(nothing):
        assert set(await process(None).all_figures(nothing)) == {"1"}


def test_the_text_is_what_prometheus_reads() -> None:
    text, content_type = exposition(Figures({}, NOBODY), "")
    assert list(text_string_to_metric_families(text.decode()))
    assert content_type.startswith("text/plain; version=0.0.4")
    openmetrics, its_type = exposition(
        Figures({}, NOBODY), "application/openmetrics-text; version=1.0.0"
    )
    assert openmetrics.endswith(b"# EOF\n")
    assert its_type.startswith("application/openmetrics-text")
