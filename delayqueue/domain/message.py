"""Text from other people's code (exceptions, return values) made safe to keep and send."""

import json
from collections.abc import Iterable
from typing import Final

from delayqueue.domain.job import MAX_MESSAGE_CHARS

LEAST_SECRET_CHARS: Final = 8


def clean(text: str) -> str:
    """The start of the text, with escapes as in text_of()."""
    return _escaped(text[:MAX_MESSAGE_CHARS])[:MAX_MESSAGE_CHARS]


def without(secrets: Iterable[str], text: str) -> str:
    """The text with "***" instead of each secret, also where JSON has escaped it.

    Of "Bearer abc", what follows the space is one by itself. What is shorter than LEAST_SECRET_CHARS stays.
    """
    parts = {part for each in secrets for part in (each, each.partition(" ")[2].strip())}
    long = {part for part in parts if len(part) >= LEAST_SECRET_CHARS}
    as_json = {json.dumps(part)[1:-1] for part in long}
    forms = (
        long | as_json | {form.replace("/", "\\/") for form in as_json}
    )  # the last: as PHP has it
    for form in sorted(forms, key=len, reverse=True):  # one may be a part of another
        text = text.replace(form, "***")
    return text


def message_of(value: object) -> str:
    """The start of a return value as text, whatever its `__str__` does."""
    return clean(text_of(value))


def text_of(value: object) -> str:
    r"""A return value as text, whatever its `__str__` does; a dict, a list or a tuple as JSON.

    Lone surrogates, which UTF-8 does not have, are written as escapes: \udce9.
    """
    try:
        return _escaped(_json(value) if isinstance(value, (dict, list, tuple)) else str(value))
    except BaseException as error:  # it is other people's code
        return f"({type(value).__name__}, whose text is not available: {type(error).__name__})"


def error_message(error: BaseException) -> str:
    """An exception as text, with its type."""
    text, kind = message_of(error), type(error).__name__
    return clean(f"{kind}: {text}" if text else kind)


def _json(value: object) -> str:
    """The value as JSON, with text for values that JSON lacks; if that is impossible, its Python notation."""
    try:
        return json.dumps(
            value, default=str, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
    except (TypeError, ValueError):  # keys, NaN
        return str(value)


def _escaped(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
