"""Text from other people's code (exceptions, return values) made safe to keep and send."""

from delayqueue.domain.job import MAX_MESSAGE_CHARS


def clean(text: str) -> str:
    r"""The start of the text; lone surrogates, which UTF-8 does not have, are written as escapes: \udce9."""
    kept = text[:MAX_MESSAGE_CHARS]
    return kept.encode("utf-8", "backslashreplace").decode()[:MAX_MESSAGE_CHARS]


def said_of(value: object) -> str:
    """A return value as text, whatever its `__str__` does."""
    try:
        return clean(str(value))
    except BaseException as error:  # it is other people's code
        return f"({type(value).__name__}, whose text is not available: {type(error).__name__})"


def said_by(error: BaseException) -> str:
    """An exception as text, with its type."""
    text, kind = said_of(error), type(error).__name__
    return clean(f"{kind}: {text}" if text else kind)
