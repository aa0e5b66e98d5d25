"""The envelope is around the real statuses, too, in the client's language."""

import pytest

from tests.api_client import Api


@pytest.mark.parametrize(("method", "path"), [("POST", "/nope"), ("GET", "/push")])
async def test_the_real_statuses_speak_english_too(api: Api, method: str, path: str) -> None:
    answer = await api.request(method, path, headers={"Accept-Language": "en"})
    assert answer.message.isascii()
