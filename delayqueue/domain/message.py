"""What code of other people says, as text that can be kept and sent: their exceptions, what they return."""

from delayqueue.domain.job import MAX_MESSAGE_CHARS


def clean(text: str) -> str:
    r"""The beginning of the text; lone surrogates, of which there is no UTF-8, as they are written: \udce9."""
    kept = text[:MAX_MESSAGE_CHARS]
    return kept.encode("utf-8", "backslashreplace").decode()[:MAX_MESSAGE_CHARS]


def said_of(value: object) -> str:
    """What somebody returned, whatever its `__str__` does."""
    try:
        return clean(str(value))
    except BaseException as error:  # it is somebody else's code
        return f"({type(value).__name__}, whose text cannot be had: {type(error).__name__})"


def said_by(error: BaseException) -> str:
    """An exception, with its kind."""
    text, kind = said_of(error), type(error).__name__
    return clean(f"{kind}: {text}" if text else kind)
