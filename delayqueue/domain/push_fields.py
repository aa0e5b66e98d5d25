"""The fields of /push, each declared once. Pure.

What comes from a row, and what is written where an editor needs a typed signature and only compared with it (`make
contract`), is in CONTRIBUTING.md: "A new field of a push".

A program that keeps a job before it is pushed needs no server to check its fields: checked(). The request model
(web/endpoints/push.py) has the same rules in pydantic's types, which check all fields in one go; a test compares the
two.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from delayqueue.domain import push_rules
from delayqueue.domain.job import (
    MAX_DUE_S,
    MAX_GROUP_BYTES,
    MAX_ID_BYTES,
    MAX_PRIORITY,
    MAX_TAGS,
    MAX_TOPIC_BYTES,
    MAX_TTR_S,
    USUAL_PRIORITY,
    IfExists,
)
from delayqueue.domain.push_rules import NEW_ID, SECONDS, Rule
from delayqueue.errors import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class PushField:
    """A field of /push.

    - `words` say what it means: in /openapi.json, and in both languages of the API's page.
    - `option` is its option of `delay-queue push`, as --help shows it, and `help` its line there; "" = cli/remote.py
      has one that needs more than that.
    - `kept_as`: a text that the server keeps with the job as it is; its name in the record. /take tells it, and /pop
      if `is_popped`. "" = the code that acts on the field says what is kept.
    - `is_in_form`: the form of the page at /admin asks for it.
    """

    name: str
    rule: Rule
    words: Text
    option: str = ""
    help: str = ""
    kept_as: str = ""
    is_popped: bool = False
    is_in_form: bool = False


FIELDS: Final = (
    PushField(
        name="id",
        rule=push_rules.job_id,
        words=Text(
            f'任务的名字，所有主题共用一个命名空间，1 到 {MAX_ID_BYTES} 字节；写 "{NEW_ID}" 则由服务生成唯一的 id，'
            "后生成的排在先生成的之后",
            f"The job's name, unique over all topics, 1 to {MAX_ID_BYTES} bytes; "
            f'with "{NEW_ID}" the server makes a unique id, and later ones sort after earlier ones.',
        ),
        is_in_form=True,
    ),
    PushField(
        name="topic",
        rule=push_rules.topic,
        words=Text(
            f"任务的种类，1 到 {MAX_TOPIC_BYTES} 字节；worker 按它来取",
            f"What kind of job it is, 1 to {MAX_TOPIC_BYTES} bytes; workers ask for it.",
        ),
        is_in_form=True,
    ),
    PushField(
        name="delay",
        rule=SECONDS,
        words=Text(
            '从现在起多少秒之后到期，不能写 "10m"；默认 0',
            'Seconds from now until the job is due: a number, not "10m"; 0 by default.',
        ),
        is_in_form=True,
    ),
    PushField(
        name="due",
        rule=partial(
            push_rules.within,
            least=0,
            most=MAX_DUE_S,
            must="must be unix seconds (not milliseconds), {least} to {most}",
        ),
        words=Text(
            "到期的时刻，用来代替 `delay`；如果已经过去，立即到期",
            "Unix seconds at which it is due, instead of `delay`; at once if they are past.",
        ),
    ),
    PushField(
        name="ttr",
        rule=partial(
            push_rules.whole, least=1, most=MAX_TTR_S, must="must be {least} to {most} seconds"
        ),
        words=Text(
            "处理时限：worker 最多可以处理多久",
            "Time to run in seconds: how long a worker may take.",
        ),
        is_in_form=True,
    ),
    PushField(
        name="body",
        rule=push_rules.text,
        words=Text(
            "给 worker 的内容；服务不解析它",
            'The data for the worker, kept byte for byte; "" by default.',
        ),
        is_in_form=True,
    ),
    PushField(
        name="tags",
        rule=push_rules.tags,
        words=Text(
            f"标签，用来取消或列出任务，最多 {MAX_TAGS} 个",
            f"Tags to cancel or list by, at most {MAX_TAGS}.",
        ),
        is_in_form=True,
    ),
    PushField(
        name="retry",
        rule=push_rules.retry_schedule,
        words=Text(
            "失败之后何时再次投递：`delays`、`preset`、`max` 三选一；默认无限次，立即",
            "When it is delivered again after a failure: one of `delays`, `preset`, `max`; "
            "at once, forever, by default.",
        ),
        is_in_form=True,
    ),
    PushField(
        name="if_exists",
        rule=push_rules.if_exists,
        words=Text(
            "id 已存在时怎么办，不论处于什么状态，保留的结果也算：`replace` 替换，这是默认值；"
            "`keep` 保留原来的，返回 0；`fail` 返回码 5",
            "If the id exists, in any state, also as a kept result: `replace` it, the default; "
            "`keep` it and answer 0; or `fail` with code 5.",
        ),
    ),
    PushField(
        name="max_wait",
        rule=push_rules.some_seconds,
        words=Text(
            "一再推送同一 id（`replace`）时，最迟在这一轮第一次推送之后多少秒到期；任务被取走或结束后，或者还是死信时，"
            "再推送就开始新的一轮",
            "However often the id is pushed again, with `replace`, the job is due no later than this many seconds "
            "after the first of these pushes; a push after it was handed out or ended, or while it is buried, "
            "counts as a first one.",
        ),
        option="--max-wait LENGTH",
        help="due no later than this long after the first push of its id",
    ),
    PushField(
        name="retain",
        rule=SECONDS,
        words=Text(
            "结束后记录再保留多少秒；默认 0",
            "How many seconds its record is kept after its end; 0 by default.",
        ),
        option="--retain LENGTH",
        help="keep its record this long after its end",
        is_in_form=True,
    ),
    PushField(
        name="expire",
        rule=push_rules.some_seconds,
        words=Text(
            "到期多少秒之后还没有投递，就过期；默认永不",
            "How many seconds after its due time it expires if it was not delivered; never by default.",
        ),
        option="--expire LENGTH",
        help="it expires this long after its due time",
        is_in_form=True,
    ),
    PushField(
        name="priority",
        rule=partial(
            push_rules.whole, least=0, most=MAX_PRIORITY, must="must be {least} to {most}"
        ),
        words=Text(
            f"就绪的任务中数值小的优先；默认 {USUAL_PRIORITY}",
            f"Of ready jobs the smallest number goes first; {USUAL_PRIORITY} by default.",
        ),
        option="--priority N",
        help=f"among ready jobs the smallest goes first [{USUAL_PRIORITY}]",
        is_in_form=True,
    ),
    PushField(
        name="group",
        rule=push_rules.group,
        words=Text(
            f"属于哪一组，例如一个客户，1 到 {MAX_GROUP_BYTES} 字节",
            f"The group that it belongs to, such as a customer, 1 to {MAX_GROUP_BYTES} bytes.",
        ),
        option="--group GROUP",
        help="the group that it belongs to, such as a customer",
        kept_as="group",
        is_popped=True,
        is_in_form=True,
    ),
    PushField(
        name="call",
        rule=push_rules.call,
        words=Text(
            "任务到期时由服务发出这个调用，worker 得不到它",
            "The server makes this call when the job is due; no worker gets the job.",
        ),
        is_in_form=True,
    ),
    PushField(
        name="traceparent",
        rule=push_rules.traceparent,
        words=Text(
            "W3C 链路上下文，代替请求头里的；/pop 会返回它",
            "W3C trace context, instead of the request's header; /pop returns it.",
        ),
        kept_as="traceparent",
        is_popped=True,
    ),
    PushField(
        name="idempotency_key",
        rule=push_rules.short_text,
        words=Text(
            "id 和键都相同的重复推送不会改变任何东西",
            "A push that repeats another one, with the same id and key, changes nothing.",
        ),
        option="--idempotency-key KEY",
        help="repeating a push with its id and key changes nothing",
        kept_as="key",
    ),
)

NO_MAX_WAIT: Final = Text(
    "max_wait 需要 if_exists 为 replace（默认值）：keep 和 fail 不会推迟已有的job",
    "max_wait needs if_exists = replace, the default: a push with keep or fail puts no job off",
)

RULES: Final[Mapping[str, Rule]] = {field.name: field.rule for field in FIELDS}
WORDS: Final[Mapping[str, Text]] = {field.name: field.words for field in FIELDS}
# the texts that are kept and told as they are, and those of them that /pop tells: their names in the record
KEPT: Final = {field.name: field.kept_as for field in FIELDS if field.kept_as}
POPPED: Final = {field.name: field.kept_as for field in FIELDS if field.is_popped}


def checked(request: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a /push as the server understands them; None is the same as absent.

    Raises TypeError or ValueError, which names the field and says what it must be.
    """
    given = {"topic": "", "id": "", "ttr": 0} | push_rules.given(request)
    for name in given:
        if name not in RULES:
            raise ValueError(f"{name}: unknown field; there are {', '.join(RULES)}")
    found = {name: rule(name, given[name]) for name, rule in RULES.items() if name in given}
    if found.get("delay") and "due" in found:
        raise ValueError("delay and due exclude each other")
    if found["id"] == NEW_ID and "idempotency_key" in found:
        raise ValueError(
            f'idempotency_key needs an id of your own: with "{NEW_ID}" each push is another job'
        )
    if "max_wait" in found and found.get("if_exists", IfExists.REPLACE) != IfExists.REPLACE:
        raise ValueError(NO_MAX_WAIT.en)
    return found
