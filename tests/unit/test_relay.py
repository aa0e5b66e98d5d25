"""The relay, without a database: rows that are to blame themselves hold up no other."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from delayqueue.client import Client
from delayqueue.relay.relay import Relay
from delayqueue.relay.row import Row


def row(options: str, **fields: Any) -> Row:
    usual: dict[str, Any] = {"delay_s": None, "due_s": None, "cancel": False, "cancel_tag": None}
    job = {"id": "a", "topic": "t", "body": ""}
    return Row(seq=1, created_ms=1, age_s=0.0, options=options, **usual | job | fields)


@pytest.mark.parametrize(
    "options",
    [
        '{"ttr": 1' + "0" * 400 + "}",
        '{"retain": 1' + "0" * 400 + "}",
        '{"tags": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"' + "x" * 100_000 + '": 1}',
        '{"\\ud800\\u0000": 1}',
    ],
    ids=["a long ttr", "a long time", "deep", "a long name", "a name that no database holds"],
)
def test_a_row_that_no_job_can_be_fails_alone(options: str) -> None:
    database = Mock()
    database.take.return_value = [row(options)]
    assert Relay(database, Client("http://127.0.0.1:1"), 60.0).move() == 1
    [(_, reason)] = [call.args for call in database.fail.call_args_list]
    assert (0 < len(reason) <= 1024, "\0" in reason) == (True, False)
    assert reason.encode().decode() == reason
    database.commit.assert_called_once_with()
