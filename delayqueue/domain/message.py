"""Text from other people's code (exceptions, return values) made safe to keep and send."""

from delayqueue.domain.job import MAX_MESSAGE_CHARS


def clean(text: str) -> str:
    """The start of the text, with escapes as in text_of()."""
    return _escaped(text[:MAX_MESSAGE_CHARS])[:MAX_MESSAGE_CHARS]


def message_of(value: object) -> str:
    """The start of a return value as text, whatever its `__str__` does."""
    return clean(text_of(value))


def text_of(value: object) -> str:
    r"""A return value as text, whatever its `__str__` does.

    Lone surrogates, which UTF-8 does not have, are written as escapes: \udce9.
    """
    try:
        return _escaped(str(value))
    except BaseException as error:  # it is other people's code
        return f"({type(value).__name__}, whose text is not available: {type(error).__name__})"


def error_message(error: BaseException) -> str:
    """An exception as text, with its type."""
    text, kind = message_of(error), type(error).__name__
    return clean(f"{kind}: {text}" if text else kind)


def _escaped(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
