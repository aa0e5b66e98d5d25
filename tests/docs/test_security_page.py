"""docs/security.md says what the settings say."""

from typing import Final

from delayqueue.beanstalk.session import MOST_WATCHED
from delayqueue.beanstalk.tubes import MOST_WATCHED_TOGETHER
from delayqueue.config.config import Config
from delayqueue.net.unanswered import LONGEST_TOGETHER

from .markdown import read

PAGE: Final = read("docs/security.md")


def test_the_limits_are_those_of_the_settings() -> None:
    assert f"| `max_polls`, {Config().max_polls:,};" in PAGE
    assert f"| `max_connections`, {Config().max_connections:,};" in PAGE
    assert f"{LONGEST_TOGETHER} times the longest request, 128 MiB" in PAGE
    assert f"{MOST_WATCHED:,} of a connection, {MOST_WATCHED_TOGETHER:,} of all together" in PAGE
