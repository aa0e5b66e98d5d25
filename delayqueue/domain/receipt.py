"""Receipts: each identifies one reservation of one job for the clients of HTTP.

A receipt is `NONCE-CHECK`. The nonce is unique to the call that reserved the job, and the store compares it. The check
is the CRC-32 of the id; it tells another job's receipt from an old one of this job.
"""

import secrets
from collections.abc import Iterator
from itertools import count
from zlib import crc32

from delayqueue.errors import Invalid


def nonces() -> Iterator[str]:
    """Endless nonces, unique among all processes: 48 random bits and a counter."""
    return map(f"{secrets.token_hex(6)}-{{:x}}".format, count(1))


def receipt_for(nonce: str, job_id: str) -> str:
    """The receipt that a consumer gets for `job_id` from the call that used `nonce`."""
    return f"{nonce}-{crc32(job_id.encode()):08x}"


def nonce_of(receipt: str, job_id: str, place: int | None = None) -> str:
    """The nonce in a receipt, of an array the one at `place`. Raises Invalid if it is not one of this job.

    What begins with a dash is not a nonce, but a word of the scripts (_end.lua).
    """
    nonce, _, check = receipt.rpartition("-")
    if nonce[:1] in {"", "-"} or check != f"{crc32(job_id.encode()):08x}":
        field = "receipt" if place is None else f"receipts.{place}"
        raise Invalid.of(f"{field} 不是这个job的", f"{field}: not a receipt of this job")
    return nonce
