"""What the original takes, though it is odd, is taken here too; docs/migration.md names what is not."""

import gzip
import http.client
import json
from typing import Any

import pytest

from tests.api_client import INVALID, TOO_LARGE
from tests.processes import LOOPBACK, QueueServer


def ask(
    server: QueueServer, path: str, body: bytes, method: str = "POST", **headers: str
) -> tuple[int, Any]:
    """Status and envelope; the path goes out as it is written."""
    connection = http.client.HTTPConnection(LOOPBACK, server.port, timeout=10)
    try:
        connection.request(
            method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}
        )
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def job(topic: str, **more: object) -> bytes:
    return json.dumps({"topic": topic, "id": topic, "ttr": 60, "delay": 3600, **more}).encode()


@pytest.mark.parametrize("slashes", ["//", "/./", "///", "/././", "//./"])
def test_the_originals_paths_are_served_with_slashes_too_many(
    ordered_server: QueueServer, topic: str, slashes: str
) -> None:
    assert ask(ordered_server, f"{slashes}push", job(topic))[1]["code"] == 0
    found = ask(ordered_server, f"{slashes}get", json.dumps({"id": topic}).encode())[1]["data"]
    assert found["topic"] == topic
    assert ask(ordered_server, f"{slashes}delete", json.dumps({"id": topic}).encode())[0] == 200


@pytest.mark.parametrize("path", ["//purge", "/./admin", "/x/../push", "/push/", "//", "/.push"])
def test_other_paths_are_served_as_they_are_written_only(
    ordered_server: QueueServer, topic: str, path: str
) -> None:
    assert ask(ordered_server, path, job(topic))[0] == 404


@pytest.mark.parametrize("before", [b"", b" \n", b"\xef\xbb\xbf"])
def test_plain_json_counts_whatever_its_content_encoding_says(
    ordered_server: QueueServer, topic: str, before: bytes
) -> None:
    answer = ask(ordered_server, "/push", before + job(topic), Content_Encoding="gzip")
    assert (answer[0], answer[1]["code"]) == (200, 0)


def test_a_compressed_body_is_refused(ordered_server: QueueServer, topic: str) -> None:
    packed = gzip.compress(job(topic))
    status, answer = ask(ordered_server, "/push", packed, Content_Encoding="gzip")
    assert (status, answer["code"]) == (413, TOO_LARGE)


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "GET", "HEAD"])
def test_methods_that_browsers_send_for_other_pages_change_nothing(
    ordered_server: QueueServer, topic: str, method: str
) -> None:
    assert ask(ordered_server, "/push", job(topic), method)[0] == 405
    found = ask(ordered_server, "/get", json.dumps({"id": topic}).encode())[1]
    assert found["data"] is None


@pytest.mark.parametrize(("deep", "code"), [(200, 0), (201, INVALID)])
def test_json_is_read_to_a_depth_of_200(
    ordered_server: QueueServer, topic: str, deep: int, code: int
) -> None:
    nested: list[object] = []
    for _ in range(deep - 1):
        nested = [nested]
    assert ask(ordered_server, "/push", job(topic, ignored=nested))[1]["code"] == code


def test_blanks_around_the_topics_of_a_pop_do_not_count(
    ordered_server: QueueServer, topic: str
) -> None:
    ask(ordered_server, "/push", job(topic, delay=0))
    asked = {"topic": f"other-{topic} , {topic} ", "timeout": 10}
    assert ask(ordered_server, "/pop", json.dumps(asked).encode())[1]["data"]["topic"] == topic


def test_there_is_nothing_to_post_to_the_root(ordered_server: QueueServer, topic: str) -> None:
    assert ask(ordered_server, "/", job(topic))[0] == 405
