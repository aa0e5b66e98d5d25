"""The body of a job: what its worker gets, byte for byte. Over HTTP it is text; other doors take any bytes. No IO."""


def body_of(raw: bytes) -> str:
    """These bytes as text, of which `raw_body` makes the very same bytes again."""
    return raw.decode("utf-8", "surrogateescape")


def raw_body(body: str) -> bytes:
    """The bytes of a body, which need not be UTF-8."""
    return body.encode("utf-8", "surrogateescape")


def readable(body: str) -> str:
    """The body where it has to be text: U+FFFD in place of bytes that are no UTF-8."""
    return body if body.isascii() else raw_body(body).decode("utf-8", "replace")
