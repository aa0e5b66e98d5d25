"""The record's two twins, Lua and Python, read and write the same text."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from delayqueue.store.record import parse_record

if TYPE_CHECKING:
    from redis.asyncio import Redis


class Vector(NamedTuple):
    """A job's fields, and the record that they make."""

    due: int
    created: int
    ttr: int
    topic: bytes
    body: bytes
    record: bytes
    options: bytes = b""
    expire: int = 0
    retain: int = 0


NOW: Final = 1_767_225_600_000
# "!" is 0, "z" is 89
VECTORS: Final = {
    "a plain job": Vector(NOW + 3_600_000, NOW, 60_000, b"t", b"b", b'0$>:AaI!$>:<g!!!!(E]!"tb'),
    "all zero": Vector(0, 0, 0, b"", b"", b"0" + b"!" * 21),
    "the largest numbers": Vector(
        90**7 - 1,
        90**7 - 1,
        90**5 - 1,
        b"t" * 256,
        b"",
        b"1" + b"z" * 19 + b"#m" + b"z" * 14 + b'!!!!"' + b"t" * 256 + b"o",
        options=b"o",
        expire=90**7 - 1,
        retain=90**7 - 1,
    ),
    "options alone": Vector(
        90, 1, 2, b"t", b"", b'1!!!!!"!!!!!!!"!!!!#!"' + b"!" * 14 + b"!!!!#t{}", options=b"{}"
    ),
    "a time to expire alone": Vector(
        0, 0, 0, b"", b"b", b"1" + b"!" * 27 + b"%" + b"!" * 12 + b"b", expire=4
    ),
    "a time to be kept alone": Vector(
        0, 0, 0, b"", b"b", b"1" + b"!" * 34 + b"&" + b"!" * 5 + b"b", retain=5
    ),
    "any byte": Vector(
        0, 0, 0, b"\n\x00", b"\xff\r\n\x00 0!", b"0" + b"!" * 20 + b"#\n\x00\xff\r\n\x00 0!"
    ),
}
cases = pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS.keys())

NO_RECORDS: Final = {
    "empty": b"",
    "only the kind": b"0",
    "another kind": b"2" + b"!" * 60,
    "a header cut short": b"0" + b"!" * 20,
    "a long header cut short": b"1" + b"!" * 39,
    "a topic that is not all there": b"0" + b"!" * 20 + b"$ab",
    "options that are not all there": b"1" + b"!" * 39 + b"#o",
    "a topic of less than nothing": b"0" + b"!" * 20 + b" abc",
    "options of less than nothing": b"1" + b"!" * 39 + b" abc",
}

FIELDS: Final = ("due", "created", "ttr", "expire", "retain", "topic", "options", "body")
PACK: Final = """
local job = {}
for i = 1, #ARGV, 2 do job[ARGV[i]] = ARGV[i + 1] end
for _, name in ipairs({ 'due', 'created', 'ttr', 'expire', 'retain' }) do job[name] = tonumber(job[name]) end
return pack_record(job)
"""
UNPACK: Final = """
local job = unpack_record(ARGV[1])
if not job then return false end
return {
  int(job.due), int(job.created), int(job.ttr), int(job.expire), int(job.retain), job.topic, job.options, job.body,
}
"""


async def run(redis: Redis, script: str, *args: Any) -> Any:
    """Run a script behind the prelude, as the verbs' scripts run."""
    prelude = (
        resources.files("delayqueue.store.scripts").joinpath("_prelude.lua").read_text("utf-8")
    )
    client: Any = redis
    return await client.eval(prelude + script, 2, "{t}", "{t}:%s", *args)


@cases
async def test_a_record_is_packed_as_the_table_says(redis: Redis, vector: Vector) -> None:
    args = [part for name in FIELDS for part in (name, getattr(vector, name))]
    assert await run(redis, PACK, *args) == vector.record


@cases
async def test_lua_reads_what_the_table_says(redis: Redis, vector: Vector) -> None:
    values = [getattr(vector, name) for name in FIELDS]
    expected = [value if isinstance(value, bytes) else str(value).encode() for value in values]
    assert await run(redis, UNPACK, vector.record) == expected


@cases
def test_python_reads_what_the_table_says(vector: Vector) -> None:
    record = parse_record(vector.record)
    assert (record.due_ms, record.created_ms, record.ttr_ms) == vector[:3]
    assert (record.topic, record.options, record.body) == (
        vector.topic,
        vector.options,
        vector.body,
    )


@pytest.mark.parametrize("raw", NO_RECORDS.values(), ids=NO_RECORDS.keys())
async def test_what_is_no_record_is_taken_for_none(redis: Redis, raw: bytes) -> None:
    assert await run(redis, UNPACK, raw) is None
    with pytest.raises(ValueError, match="record"):
        parse_record(raw)
