"""What is not JSON, or not the JSON that an endpoint takes, gets an error in the envelope and costs little."""

import time
from typing import Final

import pytest

from tests.api_client import TOO_LARGE, Api

from .conftest import in_one_setup

ENDPOINTS: Final = (
    "/push",
    "/pop",
    "/get",
)  # /push takes arrays, too; all others read as /get does
FIELDS: Final = '"topic":"bad-json","id":"bad-json","timeout":0,"ttr":60'
LEVELS: Final = 100_000


def job_with(raw: bytes) -> bytes:
    """A request that each of them takes, with raw bytes instead of its last member."""
    return b"{" + FIELDS.encode() + b"," + raw + b"}"


BAD: Final = {
    "empty": b"",
    "white space": b" \r\n\t",
    "no JSON": b"nope",
    "a form": b"topic=order&id=1",
    "null": b"null",
    "a number": b"1",
    "a text": b'"topic"',
    "empty array": b"[]",
    "cut off": b'{"topic":"bad-json","id":"bad',
    "open": b"{",
    "single quotes": b"{'topic':'bad-json'}",
    "trailing comma": job_with(b'"body":"x",'),
    "a comment": job_with(b'"body":"x"/* x */'),
    "trailing text": job_with(b'"body":"x"') + b"zz",
    "two documents": job_with(b'"body":"x"') * 2,
    "leading zero": job_with(b'"delay":01'),
    "hexadecimal": job_with(b'"delay":0x1'),
    "new line in a text": job_with(b'"body":"a\nb"'),
    "NUL in a text": job_with(b'"body":"a\0b"'),
    "unknown escape": job_with(b'"body":"\\x41"'),
    "half an escape": job_with(b'"body":"\\u00"'),
    "lone byte": job_with(b'"body":"\xff"'),
    "continuation byte": job_with(b'"body":"\x80"'),
    "cut-off UTF-8": job_with(b'"body":"\xe4\xbd"'),
    "overlong UTF-8": job_with(b'"body":"\xc0\xaf"'),
    "surrogate in UTF-8": job_with(b'"body":"\xed\xa0\x80"'),
    "above Unicode": job_with(b'"body":"\xf5\x80\x80\x80"'),
    "bad UTF-8 in a name": job_with(b'"\xff":1'),
    "Latin-1": job_with('"body":"é"'.encode("latin-1")),
    "UTF-16": job_with(b'"body":"x"').decode().encode("utf-16"),
    "compressed": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    "100,000 arrays": b"[" * LEVELS + b"]" * LEVELS,
    "100,000 arrays open": b"[" * LEVELS,
    "100,000 objects": b'{"a":' * LEVELS + b"1" + b"}" * LEVELS,
    "100,000 levels in a field": job_with(b'"body":' + b"[" * LEVELS + b"]" * LEVELS),
    "100,000 levels in an unknown field": job_with(b'"x":' + b"[" * LEVELS + b"]" * LEVELS),
}

BAD_IN_PUSH: Final = {
    "lone surrogate": job_with(b'"body":"\\ud800"'),
    "surrogates in wrong order": job_with(b'"body":"\\udc00\\ud800"'),
    "lone surrogate in an id": job_with(b'"id":"\\ud800"'),
    "NaN": job_with(b'"delay":NaN'),
    "Infinity": job_with(b'"delay":-Infinity'),
    "1e400": job_with(b'"delay":1e400'),
    "5,000 digits": job_with(b'"delay":' + b"9" * 5000),
    "5,000 digits of ttr": job_with(b'"ttr":' + b"9" * 5000),
    "5,000 digits behind the point": job_with(b'"delay":-0.' + b"9" * 5000),
    "in an array: lone surrogate": b"[" + job_with(b'"body":"\\ud800"') + b"]",
    "in an array: bad UTF-8": b"[" + job_with(b'"body":"\xff"') + b"]",
    "in an array: NaN": b"[" + job_with(b'"delay":NaN') + b"]",
    "in an array: cut off": b"[" + job_with(b'"body":"x"'),
    "in an array: 100,000 levels": b"[" + job_with(b'"x":' + b"[" * LEVELS + b"]" * LEVELS) + b"]",
}
BAD_IN_POP: Final = {
    "NaN": b'{"topic":"bad-json","timeout":NaN}',
    "1e400": b'{"topic":"bad-json","timeout":1e400}',
    "5,000 digits": b'{"topic":"bad-json","timeout":0,"count":' + b"9" * 5000 + b"}",
    "lone surrogate": b'{"topic":"\\ud800","timeout":0}',
    "an array": b'[{"topic":"bad-json","timeout":0}]',
}
BAD_IN_GET: Final = {
    "lone surrogate": b'{"id":"\\ud800"}',
    "5,000 digits": b'{"id":' + b"9" * 5000 + b"}",
    "NaN": b'{"id":NaN}',
    "an array": b'["a"]',
    "100,000 levels in ids": b'{"ids":' + b"[" * LEVELS + b"]" * LEVELS + b"}",
}

REQUESTS: Final = {
    **{(path, why): raw for path in ENDPOINTS for why, raw in BAD.items()},
    **{("/push", why): raw for why, raw in BAD_IN_PUSH.items()},
    **{("/pop", why): raw for why, raw in BAD_IN_POP.items()},
    **{(path, why): raw for path in ENDPOINTS[2:] for why, raw in BAD_IN_GET.items()},
}


@in_one_setup
@pytest.mark.parametrize(
    ("path", "raw"),
    [(path, raw) for (path, _), raw in REQUESTS.items()],
    ids=[f"{path} {why}" for path, why in REQUESTS],
)
async def test_bad_json_gets_an_error_in_the_envelope(api: Api, path: str, raw: bytes) -> None:
    started_s = time.monotonic()
    answer = await api.request("POST", path, raw)
    spent_s = time.monotonic() - started_s
    if raw.startswith(b"[{"):
        assert first_code(answer.data, otherwise=answer.code) == 1
        assert answer.status == 200
    else:
        answer.refused()
    assert len(answer.message) < 500
    # it takes a few milliseconds; the bound only separates a busy machine from a parser that goes astray
    assert spent_s < 20


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (job_with(b'"body":"\\ud800"'), r"\ud800, half of a surrogate pair,"),
        (job_with(b'"id":"\\\\\\ud83d\\ude00 \\uDC00"'), r"\uDC00, half of a surrogate pair,"),
        (
            b"[" + job_with(b'"tags":["\\ud800\\ud800\\udc00"]') + b"]",
            r"\ud800, half of a surrogate pair,",
        ),
        (job_with(b'"\\udfff":1'), r"\udfff, half of a surrogate pair,"),
        (job_with(b'"body":"\xff"'), "bytes that are not UTF-8"),
    ],
)
async def test_text_that_is_not_valid_unicode_is_refused_in_words(
    api: Api, raw: bytes, why: str
) -> None:
    english = await api.request("POST", "/push", raw, headers={"Accept-Language": "en"})
    assert english.refused().startswith(f"text that is not valid Unicode: {why} at line 1 column ")
    assert "不是有效的Unicode" in (await api.request("POST", "/push", raw)).refused()


@pytest.mark.parametrize(
    "raw",
    [
        job_with(b",".join(b'"%x":1' % n for n in range(LEVELS))),
        job_with(b'"x":[' + b"[]," * LEVELS + b"[]]"),
        job_with(b'"body":"\\",",' + b"1," * LEVELS),  # cut off
        b"[" + b"{}," * LEVELS + b"{}]",
    ],
    ids=["unknown fields", "in a field", "cut off", "array"],
)
async def test_a_request_of_too_many_members_is_refused(api: Api, raw: bytes) -> None:
    message = (await api.request("POST", "/push", raw)).refused(TOO_LARGE, 413)
    assert "成员" in message


async def test_a_body_may_have_any_number_of_commas(api: Api, topic: str) -> None:
    body = '{"a":[1,"\\"]}, ' * 30_000
    (await api.push(topic=topic, id=topic, body=body)).ok()
    assert (await api.pop(topic)).ok()["body"] == body


def first_code(results: list[dict[str, int]] | None, *, otherwise: int) -> int:
    """An array may be refused as a whole, or its one bad job alone."""
    return results[0]["code"] if results else otherwise


async def test_bad_json_left_nothing_behind(api: Api) -> None:
    assert (await api.get("bad-json")).ok() is None
    assert (await api.pop("bad-json", timeout=0)).ok() is None


@pytest.mark.parametrize(
    "content_type", ["application/json", "text/plain", "application/x-www-form-urlencoded", "x/y"]
)
async def test_the_content_type_does_not_matter(api: Api, topic: str, content_type: str) -> None:
    headers = {"Content-Type": content_type}
    (await api.call("/push", {"topic": topic, "id": topic, "ttr": 60}, headers)).ok()
    assert (await api.call("/get", {"id": topic}, headers)).ok()["id"] == topic


async def test_a_byte_order_mark_is_passed_over(api: Api, topic: str) -> None:
    job = f'{{"topic": "{topic}", "id": "{topic}", "ttr": 60}}'
    for content in (job, f"[{job}]"):
        (await api.request("POST", "/push", b"\xef\xbb\xbf" + content.encode())).ok()
    assert (await api.pop(topic)).ok()["id"] == topic


async def test_an_id_that_is_no_json_number_is_answered_as_null(api: Api) -> None:
    answer = await api.request("POST", "/push", b'[{"id": 1e400}, {"id": -1e400}, {"id": 5}]')
    assert [one["id"] for one in answer.ok()] == [None, None, 5]
