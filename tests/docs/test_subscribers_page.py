"""docs/subscribers.md and docs/schedules.md are true, and their examples work; so do the keys of docs/limits.md."""

import re
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from delayqueue import Worker, testing
from delayqueue.config.sections import LIMIT_KEYS, SCHEDULE_KEYS, SUBSCRIBER_KEYS
from delayqueue.testing import Finished, Released
from scripts.fields import described

from .markdown import blocks, read

PAGE: Final = read("docs/subscribers.md")
SCHEDULES: Final = read("docs/schedules.md")


@pytest.mark.parametrize(
    ("page", "path", "keys"),
    [
        ("subscribers", "/subscribe", SUBSCRIBER_KEYS),
        ("schedules", "/schedule", SCHEDULE_KEYS),
        ("limits", "/limit", LIMIT_KEYS),
    ],
)
def test_every_key_of_a_section_is_a_field_of_the_endpoint_or_is_named(
    page: str, path: str, keys: dict[str, object]
) -> None:
    own = keys.keys() - described(path).keys()
    assert own <= set(re.findall(r"`(\w+)`", read(f"docs/{page}.md")))


def test_a_function_of_old_runs_in_a_worker_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The functions that the server called until now: they take a job, and the second one reads `job.results`."""
    (block,) = blocks(PAGE, "py")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "worker.py").write_text(block.text, encoding="utf-8")
    (tmp_path / "shop" / "bookkeeping.py").write_text(
        "def book(job):\n    if job.attempt == 1: raise OSError('closed')\n    return 'booked ' + job.body\n"
        "async def tell(job):\n    return 'told: ' + job.results['book'].message\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    worker: Worker = import_module("shop.worker").worker
    first, second = (testing.run(worker, "paid", "1001", attempt=attempt) for attempt in (1, 2))
    assert first == Released("book: OSError: closed")
    assert second == Finished("booked 1001; told: booked 1001")
