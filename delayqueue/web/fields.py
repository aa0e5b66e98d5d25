"""The rules of single fields: what a value may be, and the error that names it. Seconds become milliseconds here."""

import re

from delayqueue.errors import Invalid, Text, TooLarge, shown
from delayqueue.job import (
    MAX_BATCH,
    MAX_DELAY_S,
    MAX_ID_BYTES,
    MAX_TAG_BYTES,
    MAX_TAGS,
    MAX_TOPIC_BYTES,
    MAX_TTR_S,
    IfExists,
)

# What the original's strings.TrimSpace takes off.
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

TRACEPARENT = re.compile(
    "(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
MAX_DUE_S = 10_000_000_000  # the year 2286; a due time in milliseconds by mistake is far above


def check_id(job_id: str | None) -> str:
    """The id without its outer white space."""
    job_id = (job_id or "").strip(WHITE_SPACE)
    if not job_id:
        raise Invalid(Text("job id不能为空", "id: must not be empty"))
    _check_size("id", job_id, MAX_ID_BYTES)
    return job_id


def check_topic(topic: str | None) -> str:
    """The topic without its outer white space."""
    topic = (topic or "").strip(WHITE_SPACE)
    if not topic:
        raise Invalid(Text("topic 不能为空", "topic: must not be empty"))
    _check_size("topic", topic, MAX_TOPIC_BYTES)
    return topic


def _check_size(field: str, value: str, limit_bytes: int) -> None:
    if len(value) * 4 > limit_bytes and (size := len(value.encode())) > limit_bytes:
        raise Invalid(
            Text(f"{field} 最长{limit_bytes}字节", f"{field}: {size} bytes, at most {limit_bytes}")
        )


def check_body(body: str, limit_bytes: int) -> None:
    """TooLarge where the body has more bytes than the server takes."""
    if len(body) * 4 > limit_bytes and (size := len(body.encode())) > limit_bytes:
        raise TooLarge(
            Text(f"body 最长{limit_bytes}字节", f"body: {size} bytes, at most {limit_bytes}")
        )


def check_delay(delay_s: float) -> int:
    """Seconds as milliseconds."""
    if not 0 <= delay_s <= MAX_DELAY_S:
        raise Invalid(
            Text("delay 取值范围0 - (2^31 - 1)", f"delay {delay_s:g}: must be 0 to 2^31 seconds")
        )
    return round(delay_s * 1000)


def check_pushed_topic(topic: str | None) -> str:
    """A topic that jobs can be pushed to."""
    topic = check_topic(topic)
    if "," in topic:
        raise Invalid(
            Text("topic 不能包含逗号", "topic: no comma, it separates the topics of a pop")
        )
    return topic


def check_tag(tag: str) -> str:
    """A tag without its outer white space."""
    tag = tag.strip(WHITE_SPACE)
    if not tag:
        raise Invalid(Text("tag 不能为空", "tag: must not be empty"))
    _check_size("tag", tag, MAX_TAG_BYTES)
    return tag


def check_tags(tags: list[str]) -> tuple[str, ...]:
    """Tags, each once."""
    if len(tags) > MAX_TAGS:
        raise Invalid(Text(f"tags 最多{MAX_TAGS}个", f"tags: {len(tags)} tags, at most {MAX_TAGS}"))
    return tuple(dict.fromkeys(check_tag(tag) for tag in tags))


def check_if_exists(word: str) -> IfExists:
    """What to do with a job of the same id."""
    try:
        return IfExists(word)
    except ValueError:
        words = ", ".join(IfExists)
        raise Invalid(
            Text(f"if_exists 只能是 {words}", f"if_exists {shown(word)}: must be one of {words}")
        ) from None


def check_state(word: str, states: tuple[str, ...]) -> str:
    """A state's name."""
    if word not in states:
        words = ", ".join(states)
        raise Invalid(Text(f"state 只能是 {words}", f"state {shown(word)}: must be one of {words}"))
    return word


def check_traceparent(value: str) -> str:
    """A W3C trace context."""
    if not is_traceparent(value):
        raise Invalid(
            Text(
                "traceparent 无效",
                "traceparent: must be 00-<32 hex>-<16 hex>-<2 hex>, in lower case",
            )
        )
    return value


def is_traceparent(value: str) -> bool:
    """Whether it is the header that W3C Trace Context describes: version, trace, span, flags."""
    return TRACEPARENT.fullmatch(value) is not None


def check_seconds(field: str, value_s: float) -> int:
    """A length of time in seconds as milliseconds."""
    if not 0 <= value_s <= MAX_DELAY_S:
        raise Invalid(
            Text(f"{field} 取值范围0 - 2^31", f"{field} {value_s:g}: must be 0 to 2^31 seconds")
        )
    return round(value_s * 1000)


def check_some_seconds(field: str, value_s: float) -> int:
    """A length of time in seconds as milliseconds, at least one: where 0 means something else to the store."""
    value_ms = check_seconds(field, value_s)
    if value_ms == 0:
        raise Invalid(
            Text(f"{field} 至少0.001秒", f"{field} {value_s:g}: must be at least 0.001 seconds")
        )
    return value_ms


def check_range(field: str, value: int, least: int, most: int) -> int:
    """A whole number between two others, both in."""
    if not least <= value <= most:
        raise Invalid(
            Text(
                f"{field} 取值范围{least} - {most}",
                f"{field} {shown(value)}: must be {least} to {most}",
            )
        )
    return value


def check_count(field: str, value: int | None, default: int) -> int:
    """How many jobs."""
    if value is None:
        return default
    if not 1 <= value <= MAX_BATCH:
        raise Invalid(
            Text(
                f"{field} 取值范围1 - {MAX_BATCH}",
                f"{field} {shown(value)}: must be 1 to {MAX_BATCH}",
            )
        )
    return value


def check_when(delay_s: float | None, due_s: float | None) -> tuple[int, int | None]:
    """Delay and due time in ms; the due time counts where it is not None."""
    if due_s is None:
        return check_delay(delay_s or 0), None
    if delay_s:
        raise Invalid(Text("delay 和 due 只能有一个", "delay and due exclude each other"))
    return 0, check_due(due_s, "due")


def check_due(due_s: float, field: str) -> int:
    """A unix time in seconds as milliseconds."""
    if not 0 <= due_s <= MAX_DUE_S:
        raise Invalid(
            Text(
                f"{field} 是unix时间戳(秒), 取值范围0 - {MAX_DUE_S}",
                f"{field} {due_s:.15g}: must be unix seconds (not milliseconds), 0 to {MAX_DUE_S}",
            )
        )
    return round(due_s * 1000)


def check_ttr(ttr_s: int | None) -> int:
    """Seconds as milliseconds."""
    if ttr_s is None or not 1 <= ttr_s <= MAX_TTR_S:
        raise Invalid(
            Text(
                f"ttr 取值范围1 - {MAX_TTR_S}",
                f"ttr {shown(ttr_s or 0)}: must be 1 to {MAX_TTR_S} seconds",
            )
        )
    return ttr_s * 1000
