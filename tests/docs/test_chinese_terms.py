"""Each word of the field has one Chinese term: in the pages, in the server's messages, and on the page at /admin."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.processes import REPOSITORY

from .markdown import read
from .test_twins import PACKAGE, SOURCES, TWINS

QUOTED: Final = re.compile("“([^”]+)”")
GAP: Final = re.compile(r"：|……|\d+(?=%)")  # where the server fills something in
HAN: Final = re.compile("[一-鿿]")
SETTING: Final = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
FILLED_IN: Final = re.compile(r"\{.*?\}")
TEXTS: Final = (PACKAGE / "web" / "static" / "admin" / "js" / "i18n.js").read_text()


class Term(NamedTuple):
    """`key` is the name of a text of the page that has the term, `rivals` what translations said before."""

    chinese: str
    key: str
    rivals: str


TERMS: Final = [
    Term("死信", "buried", "埋葬|埋藏|掩埋|被埋|搁置|死任务|死消息"),
    Term("处理中", "reserved", "预留|已取出|已领取|已占用|执行中|保留中"),
    Term("推送", "push", "推入|压入|添加.{0,3}任务|任务已?添加|添加副本|已添加"),
    Term("执行历史", "history", "尝试次数|执行记录|执行经过"),
    Term("响应", "expects", "应答|回答"),
    Term("信息", "message", "留言"),
    Term("返回码", "pushesRefused", r"[一-鿿，] ?code (?:为 )?\d|错误码"),
    Term("服务", "servers", "服务端|“服务器”"),
    Term("你", "noAnswer", "您"),
    Term("桶", "whyBucketFull", r"[一-鿿] ?bucket\b"),
    Term("Outbox", "outboxes", "发件箱"),
    Term("token", "token", "令牌"),
    Term("最久未领取", "oldest", "最久未取|最老|最旧|最早就绪"),
]


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.key)
def test_the_page_has_the_term(term: Term) -> None:
    text = re.search(rf'^  {term.key}: \[".*", "(.*)"\],$', TEXTS, re.MULTILINE)
    assert text
    assert term.chinese in text[1]


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.key)
def test_nothing_says_it_with_another_word(term: Term) -> None:
    texts = {page: read(page) for page in TWINS} | {
        str(source.relative_to(REPOSITORY)): source.read_text() for source in SOURCES
    }
    found = {place: re.findall(term.rivals, text) for place, text in texts.items()}
    assert {place: rivals for place, rivals in found.items() if rivals} == {}


@pytest.mark.parametrize("page", ["admin", "limits", "runbook", "scaling"])
def test_what_it_quotes_in_chinese_is_what_the_server_and_its_page_say(page: str) -> None:
    said = "".join(source.read_text() for source in SOURCES)
    quoted = [
        part for quote in QUOTED.findall(read(f"docs/{page}.zh-CN.md")) for part in GAP.split(quote)
    ]
    assert quoted
    assert [part for part in quoted if part not in said] == []


def messages(source: Path) -> Iterator[tuple[str, str]]:
    """The texts for clients in a module, in Chinese and in English: two arguments of a call, one behind the other."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Call):
            said = [FILLED_IN.sub("", ast.unparse(one)) for one in node.args]
            yield from (
                (zh, en) for zh, en in pairwise(said) if HAN.search(zh) and not HAN.search(en)
            )


def test_a_setting_that_a_message_names_in_english_is_named_in_chinese() -> None:
    said = [pair for source in SOURCES if source.suffix == ".py" for pair in messages(source)]
    assert len(said) > 100
    assert [zh for zh, en in said if set(SETTING.findall(en)) - set(SETTING.findall(zh))] == []
