"""docs/security.md says what the endpoints say."""

from __future__ import annotations

import re
from typing import Final

import pytest

from delayqueue.beanstalk.session import MOST_WATCHED
from delayqueue.beanstalk.tubes import MOST_WATCHED_TOGETHER
from delayqueue.config.config import Config
from delayqueue.net.unanswered import LONGEST_TOGETHER
from delayqueue.web.endpoints import ENDPOINTS

from .markdown import read

PAGE: Final = read("docs/security.md")


@pytest.mark.parametrize(
    ("page", "everybody"),
    [(PAGE, "open to all"), (read("docs/security.zh-CN.md"), "人人可用")],
    ids=["en", "zh"],
)
def test_the_table_of_roles_is_that_of_the_endpoints(page: str, everybody: str) -> None:
    (table,) = re.findall(
        r"^\| [^|]+ \| [^|]+ \|\n\| --- \| --- \|\n\| /push .*?\n\n", page, re.M | re.S
    )
    said = {
        (path, roles)
        for paths, roles in re.findall(r"^\| (/.*?) \| (.*) \|$", table, re.M)
        for path in paths.split()
    }
    assert said == {(endpoint.path, words(endpoint.roles, everybody)) for endpoint in ENDPOINTS}


def words(roles: frozenset[str] | None, everybody: str) -> str:
    if roles is None:
        return everybody
    return ", ".join(sorted(roles, key=["produce", "consume", "view", "admin"].index))


def test_the_limits_are_those_of_the_settings() -> None:
    assert f"| `max_polls`, {Config().max_polls:,};" in PAGE
    assert f"| `max_connections`, {Config().max_connections:,};" in PAGE
    assert f"{LONGEST_TOGETHER} times the longest request, 128 MiB" in PAGE
    assert f"{MOST_WATCHED:,} of a connection, {MOST_WATCHED_TOGETHER:,} of all together" in PAGE
