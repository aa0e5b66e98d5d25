"""/stats and the filters of /topics."""

import os
import re
from pathlib import Path

from delayqueue.answers.answer import left_out
from delayqueue.answers.servers import Stats
from tests.api_client import Api, open_api
from tests.processes import LOOPBACK, Processes, StoreServer
from tests.waiting import until, until_async


async def test_the_sums_and_counters_are_those_of_all_servers(
    processes: Processes, redis_server: StoreServer
) -> None:
    database = redis_server.new_database()
    servers = [processes.server(redis_server, redis__db=database) for _ in range(2)]
    async with open_api(servers[0].url) as one, open_api(servers[1].url) as other:
        for n in range(3):
            (await one.push(topic="a", id=f"a{n}", delay=60)).ok()
        (await other.push(topic="b", id="b", body="x")).ok()
        job = (await other.pop("b")).ok()
        (await other.finish(job["id"])).ok()
        (await one.push(topic="b", id="c")).ok()

        async def heard() -> bool:
            found = (await one.call("/stats", {})).ok()["servers"]
            names = "pushed", "delivered", "finished"
            return [sum(each[name] for each in found) for name in names] == [5, 1, 1]

        await until_async(heard)
        stats = (await one.call("/stats", {})).ok()
        chinese = (await one.call("/stats", {}, {"Accept-Language": "zh"})).ok()
    assert (stats["topics"], stats["delayed"], stats["ready"]) == (2, 3, 1)
    assert [topic["topic"] for topic in stats["busiest"]] == ["b", "a"]
    assert sorted(server["pushed"] for server in stats["servers"]) == [1, 4]
    late = [server["lateness_p99"] for server in stats["servers"]]
    assert late.count(None) == 1
    assert stats["store"]["version"].startswith("Redis ")
    assert (
        "存储停止时可能丢失任务：请在其配置中设置 `appendonly yes`" in chinese["store"]["warnings"]
    )
    assert stats["settings"]["redis.db"] == str(database)
    assert stats["set_in"]["redis.db"] == "DELAYQUEUE_REDIS_DB"
    assert "log_level" not in stats["set_in"]


async def test_a_free_port_is_told_and_is_part_of_the_name(
    processes: Processes, redis_server: StoreServer
) -> None:
    database = redis_server.new_database()
    servers = [
        processes.configured("", redis_server, redis__db=database, bind_address=f"{LOOPBACK}:0")
        for _ in range(2)
    ]
    ports: list[str] = []
    for server in servers:
        server.launch()
        await until(lambda server=server: "serving on" in server.logged())  # type: ignore[misc]
        ports += re.findall(r"serving on 127\.0\.0\.1:(\d+)", server.logged())
    async with open_api(f"http://{LOOPBACK}:{ports[0]}") as api:

        async def all_seen() -> bool:
            found = (await api.call("/stats", {})).ok()["servers"]
            names = [server["name"].partition(":")[2] for server in found]
            return names == sorted(f"{port} #1" for port in ports)

        await until_async(all_seen)


async def test_topics_are_filtered_sorted_and_paged(
    processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server, redis__db=redis_server.new_database())
    async with open_api(server.url) as api:
        for topic, count in (("a", 1), ("b", 3), ("c", 2)):
            for number in range(count):
                (await api.push(topic=topic, id=f"{topic}{number}", delay=60)).ok()
        (await api.call("/bury", {"id": "c0"})).ok()
        (await api.call("/limit", {"topic": "a", "rate": 1})).ok()

        async def names(**asked: object) -> str:
            found = (await api.call("/topics", asked)).ok()
            return "".join(topic["topic"] for topic in found)

        assert await names() == "abc"
        assert (await names(match="b"), await names(match="no such")) == ("b", "")
        unknown = (await api.call("/topics", {"topics": ["c", "unknown"]})).ok()
        assert [(one["topic"], one["delayed"]) for one in unknown] == [("c", 1), ("unknown", 0)]
        assert await names(sort="delayed") == "bac"
        assert await names(sort="delayed", reverse=True) == "acb"
        assert await names(sort="delayed", offset=1, limit=1) == "a"
        assert await names(reverse=True) == "cba"
        assert await names(offset=1, limit=1) == "b"
        assert (await names(only="buried"), await names(only="limited")) == ("c", "a")
        attention = (await api.call("/stats", {})).ok()["attention"]
        assert [(one["topic"]["topic"], one["why"]) for one in attention] == [("c", ["buried"])]
        for limits, full in (
            ({"topic": "b", "max_jobs": 4}, ""),  # it has three
            ({"topic": "c", "max_jobs": 2}, "c"),
            ({"topic": "b", "max_jobs": 3}, "bc"),
            ({"topic": "b", "when_full": "drop_oldest"}, "c"),
        ):
            (await api.call("/limit", limits)).ok()
            assert await names(only="full") == full
        attention = (await api.call("/stats", {})).ok()["attention"]
    assert [one["why"] for one in attention] == [["buried", "full"]]


async def test_a_topic_of_which_one_bucket_is_full_is_told(
    processes: Processes, redis_server: StoreServer
) -> None:
    """The jobs of a group are in one."""
    database = redis_server.new_database()
    server = processes.server(redis_server, redis__db=database, bucket_size=4)
    async with open_api(server.url) as api:
        (await api.call("/limit", {"topic": "t", "max_jobs": 40})).ok()
        jobs = [{"topic": "t", "id": f"{{a}}{n}", "group": "a", "ttr": 60} for n in range(10)]
        (await api.call("/push", jobs[:7])).ok()
        assert (await api.call("/topics", {"only": "full"})).ok() == []
        (await api.call("/push", jobs[7:])).ok()
        [full] = (await api.call("/topics", {"only": "full"})).ok()
        [told] = (await api.call("/stats", {})).ok()["attention"]
    assert (full["topic"], told["why"]) == ("t", ["full"])


async def test_what_becomes_due_is_counted_if_asked_for(api: Api, topic: str) -> None:
    for number, delay in enumerate((30, 200, 2000, 20_000)):
        (await api.push(topic=topic, id=f"{topic}/{number}", delay=delay)).ok()
    asked = {"topics": [topic, f"{topic}-unknown"], "due_soon": True}
    known, unknown = (await api.call("/topics", asked)).ok()
    assert known["due_soon"] == {"60": 1, "300": 2, "3600": 3}
    assert (unknown["due_soon"], unknown["delayed"]) == ({"60": 0, "300": 0, "3600": 0}, 0)
    [plain] = (await api.call("/topics", {"topics": [topic]})).ok()
    assert "due_soon" not in plain


async def test_without_counts_it_tells_what_takes_no_count_of_all_topics(api: Api) -> None:
    whole = (await api.call("/stats", {})).ok()
    part = (await api.call("/stats", {"counts": False})).ok()
    assert whole.keys() - part.keys() == left_out(Stats).keys()
    assert part["settings"] == whole["settings"]
    assert [each["name"] for each in part["servers"]] == [each["name"] for each in whole["servers"]]


async def test_a_folder_whose_name_is_not_utf_8_is_shown(
    processes: Processes, redis_server: StoreServer, tmp_path: Path
) -> None:
    folder = f"{tmp_path}/{os.fsdecode('配置'.encode('gbk'))}"
    server = processes.server(redis_server, data_dir=folder)
    async with open_api(server.url) as api:
        stats = (await api.call("/stats", {})).ok()
    assert stats["settings"]["data_dir"].startswith(f"{tmp_path}/\ufffd")
