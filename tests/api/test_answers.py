"""What every answer has in common: the envelope, its language, and the real statuses around it."""

from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests.api_client import Api, open_api
from tests.processes import Processes, QueueServer, StoreServer

ENDPOINTS: Final = ("/push", "/pop", "/finish", "/delete", "/get")


@pytest.mark.parametrize(
    ("accepted", "message"),
    [
        (None, "添加成功"),
        ("", "添加成功"),
        ("*", "添加成功"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "添加成功"),
        ("en", "added"),
        ("en-US,en;q=0.9", "added"),
        ("EN", "added"),
    ],
)
async def test_messages_are_in_the_clients_language(
    api: Api, topic: str, accepted: str | None, message: str
) -> None:
    headers = {} if accepted is None else {"Accept-Language": accepted}
    answer = await api.call("/push", {"topic": topic, "id": topic, "ttr": 1}, headers)
    assert answer.message == message


@pytest.mark.parametrize(("method", "path"), [("POST", "/nope"), ("GET", "/push")])
async def test_the_real_statuses_speak_english_too(api: Api, method: str, path: str) -> None:
    answer = await api.request(method, path, headers={"Accept-Language": "en"})
    assert answer.message.isascii()


@pytest.fixture(scope="module")
def english_server(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(redis_server, language="en")


@pytest.fixture
async def english_api(english_server: QueueServer) -> AsyncIterator[Api]:
    async with open_api(english_server.url) as client:
        yield client


@pytest.mark.parametrize(
    ("accepted", "message"), [(None, "added"), ("fr", "added"), ("zh-CN,en", "添加成功")]
)
async def test_the_default_language_can_be_english(
    english_api: Api, accepted: str | None, message: str
) -> None:
    headers = {} if accepted is None else {"Accept-Language": accepted}
    answer = await english_api.call("/push", {"topic": "t", "id": "a", "ttr": 1}, headers)
    assert answer.message == message
