"""The body of a job: its worker gets it byte for byte.

Over HTTP it is text; beanstalkd's protocol takes any bytes. No IO.
"""


def body_of(raw: bytes) -> str:
    """Decode bytes to a str that `raw_body` encodes to the same bytes again."""
    return raw.decode("utf-8", "surrogateescape")


def raw_body(body: str) -> bytes:
    """The bytes of a body, which need not be valid UTF-8."""
    return body.encode("utf-8", "surrogateescape")


def readable(body: str) -> str:
    """The body as valid text: U+FFFD replaces bytes that are not UTF-8."""
    return body if body.isascii() else raw_body(body).decode("utf-8", "replace")
