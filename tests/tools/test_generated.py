"""What `make generate` writes is up to date, and it finds what is not."""

import shutil
from itertools import chain
from pathlib import Path

import pytest

from delayqueue.cli.remote import REMOTE
from delayqueue.config.config import OPTIONS
from delayqueue.web.endpoints import ENDPOINTS
from scripts.fields import DECLARED, chinese, described, translations
from scripts.generate import generated, pages
from scripts.lines import count
from scripts.tables import client_methods
from tests.docs.markdown import read
from tests.docs.test_twins import words
from tests.processes import REPOSITORY


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_nothing_differs(page: Path) -> None:
    assert generated(page) == page.read_text("utf-8"), "run `make generate`"


@pytest.mark.parametrize(
    ("page", "said", "wrong"),
    [
        ("docs/cli.md", "| `purge TOPIC` | delete", "| `purge TOPICS` | delete"),
        ("docs/api.md", "| open to all |", "| view |"),
        ("docs/api.md", "| `delay` | number, 0", "| `delay` | text, 0"),
        ("docs/api.zh-CN.md", "| `delay` | 数字，0", "| `delay` | 文本，0"),
        ("docs/python.md", "| `resume(topic)` |", "| `resume(topics)` |"),
        ("docs/howto/languages.md", "package main", "package other"),
    ],
    ids=["command", "role", "field", "field in Chinese", "method", "quoted file"],
)
def test_a_change_by_hand_is_undone(tmp_path: Path, page: str, said: str, wrong: str) -> None:
    assert said in read(page)
    shutil.copytree(REPOSITORY / "docs", tmp_path / "docs")
    changed = tmp_path / page
    changed.write_text(read(page).replace(said, wrong), encoding="utf-8")
    assert generated(changed) == read(page)


def test_every_translation_is_used_and_has_the_figures_and_the_code_of_the_english() -> None:
    fields = [described(one.path) for one in ENDPOINTS]
    said = {shape["description"] for each in fields for shape, _ in each.values()}
    said |= {option.help for option in OPTIONS.values()} | {one.summary for one in ENDPOINTS}
    said |= {one.help for one in chain(*REMOTE.values())}
    said |= {summary for _, _, summary in client_methods()}
    assert set(translations()) <= said
    translated = DECLARED | translations()
    assert [one for one in translated.items() if words(one[0]) != words(one[1])] == []


def test_what_nobody_has_translated_stays_in_english() -> None:
    assert chinese("How often it barks.") == "How often it barks."


def test_a_chinese_page_gets_the_code_of_the_english_one_and_its_servers_language(
    tmp_path: Path,
) -> None:
    (tmp_path / "page.md").write_text(
        '```console\n$ DELAYQUEUE_LANGUAGE=en make\n{"message":"added"}\n```\n'
    )
    twin = tmp_path / "page.zh-CN.md"
    twin.write_text("前文\n\n```sh\nold\n```\n\n后文\n")
    assert generated(twin) == '前文\n\n```console\n$ make\n{"message":"添加成功"}\n```\n\n后文\n'


def test_a_chinese_page_with_other_blocks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("```sh\none\n```\n")
    (tmp_path / "page.zh-CN.md").write_text("无代码\n")
    with pytest.raises(ValueError, match=r"of page\.md: it has 1, this page has 0"):
        generated(tmp_path / "page.zh-CN.md")


def test_the_lines_of_a_page_are_counted_by_who_writes_them(tmp_path: Path) -> None:
    twin = tmp_path / "page.zh-CN.md"
    twin.write_text(
        "前文\n\n```sh\none\n```\n\n<!-- generated: x -->\n| a |\n<!-- end of what is generated -->\n"
    )
    found = count([twin])
    assert found["written in Chinese"] == 5
    assert found["generated: code of the Chinese pages"] == 3
    assert found["generated: tables"] == 1
    assert found["all"] == 9
