"""In which language an answer says what happened."""

from unittest.mock import Mock

import pytest

from delayqueue.errors import Text
from delayqueue.web.envelope import LANGUAGE, Responder


@pytest.mark.parametrize(
    ("servers", "accepted", "message"),
    [
        *(("zh", accepted, "添加成功") for accepted in (None, "", "*", "zh-CN,zh;q=0.9,en;q=0.8")),
        *(("zh", accepted, "added") for accepted in ("en", " en-US,en;q=0.9", "EN")),
        *(("en", accepted, "added") for accepted in (None, "fr")),
        ("en", "zh-CN,en", "添加成功"),
    ],
)
def test_a_message_is_in_the_clients_language_or_the_servers(
    servers: str, accepted: str | None, message: str
) -> None:
    request = Mock(headers={} if accepted is None else {LANGUAGE: accepted})
    assert Responder(servers).say(request, Text("添加成功", "added")) == message
