"""How the original stores a job, and where it keeps it."""

import pytest

from delayqueue.store.original import CLOCKS_S, SIGNATURE, Packed, Place, standing, unpack
from tests.importer.old import packed

NOW_S = 1_700_000_000
TTR_S = 60
# by the original's own server: {"topic":"t","id":"a","delay":3,"ttr":5,"body":"hé"}
REAL = b"\x85\xa11\xa1t\xa12\xa1a\xa13\xcek\x00\xf3\xe8\xa14\x05\xa15\xa3h\xc3\xa9"


def test_what_the_original_wrote_is_read() -> None:
    assert unpack(REAL, b"a") == Packed("t", "a", 1_795_224_552, 5, "hé")
    assert packed("t", "a", 1_795_224_552, 5, "hé") == REAL
    assert REAL.startswith(SIGNATURE)


@pytest.mark.parametrize("length", [0, 1, 31, 32, 255, 256, 2**16 - 1, 2**16, 2**20])
def test_a_body_of_any_length_is_read(length: int) -> None:
    body = "b" * length
    assert unpack(packed("t", "a", NOW_S, 86_400, body), b"a").body == body


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (b"\x05", 5),
        (b"\xcc\x05", 5),
        (b"\xcd\x00\x05", 5),
        (b"\xd0\x05", 5),
        (b"\xd1\x00\x05", 5),
        (b"\xd2\x00\x00\x00\x05", 5),
        (b"\xd3\x00\x00\x00\x00\x00\x00\x00\x05", 5),
    ],
)
def test_numbers_of_every_width_are_read(value: bytes, number: int) -> None:
    assert unpack(REAL.replace(b"\xa14\x05", b"\xa14" + value), b"a").ttr_s == number


@pytest.mark.parametrize("head", [b"\xd9\x01", b"\xc4\x01", b"\xdb\x00\x00\x00\x01"])
def test_texts_of_other_versions_of_the_library_are_read(head: bytes) -> None:
    assert unpack(REAL.replace(b"\xa1t", head + b"t"), b"a").topic == "t"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "not a packed job"),
        (b"\x80", "not a packed job"),
        (b"hello", "not a packed job"),
        (REAL[:-1], "not a packed job"),
        (REAL.replace(b"\x85", b"\x84"), "not a packed job"),
        (REAL.replace(b"\xa14\x05", b"\xa14\xc3"), "not a packed job: a value of type 0xc3"),
        (REAL.replace(b"\xa14\x05", b"\xa14\xa1x"), "not a packed job"),
        (REAL.replace(b"h\xc3\xa9", b"h\xff\xff"), "codec can't decode"),
        (packed("t", "b", NOW_S, 60, ""), "another id than its key"),
        (packed("t,u", "a", NOW_S, 60, ""), "topic: has a comma"),
        (packed("t" * 257, "a", NOW_S, 60, ""), "topic: must have 1 to 256 bytes"),
        (packed("", "a", NOW_S, 60, ""), "topic: must have 1 to 256 bytes"),
        (packed("t", "a", NOW_S, 0, ""), "ttr 0: must be 1 to 86400"),
        (packed("t", "a", NOW_S * 1000, 60, ""), "must be a unix time in seconds"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_with_a_reason(raw: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        unpack(raw, b"a")


def test_an_id_that_could_never_be_finished_is_refused() -> None:
    long = "a" * 1025
    with pytest.raises(ValueError, match="id: 1025 bytes"):
        unpack(packed("t", long, NOW_S, 60, ""), long.encode())


@pytest.mark.parametrize(
    ("due", "times", "listed", "found", "reason"),
    [
        (100, [100], False, (Place.DELAYED, 100, True), "waits for its time"),
        (100, [], False, (Place.DELAYED, 100, True), "a push that crashed before its second step"),
        (100, [50, 900], False, (Place.DELAYED, 100, True), "entries of earlier pushes of the id"),
        (100, [], True, (Place.DELAYED, 100, True), "pushed anew while its id was ready"),
        (CLOCKS_S, [CLOCKS_S], False, (Place.DELAYED, CLOCKS_S, False), "its timer may be at it"),
        (0, [], True, (Place.READY, 0, True), "the timer moved it"),
        (-9, [-9], True, (Place.READY, -9, True), "the timer is about to remove the entry"),
        (-9, [-9], False, (Place.DUE, -9, False), "the timer is about to move it"),
        (-9, [TTR_S], False, (Place.RESERVED, TTR_S, False), "popped just now"),
        (-9, [1], False, (Place.RESERVED, 1, False), "its TTR has almost run out"),
        (-9, [30, 40], False, (Place.RESERVED, 40, False), "popped twice"),
        (
            -9,
            [30],
            True,
            (Place.RESERVED, 30, False),
            "popped, and ready a second time after a crash",
        ),
        (-99, [-1], False, (Place.DUE, -99, False), "its TTR ran out"),
        (-9, [], False, (Place.LOST, TTR_S, False), "a pop that crashed after its first step"),
        (-9, [9999], False, (Place.LOST, TTR_S, False), "an entry that no pop can have made"),
    ],
)
def test_a_jobs_place_follows_from_its_record_and_its_entries(
    due: int, times: list[int], listed: bool, found: tuple[Place, int, bool], reason: str
) -> None:
    """Times are relative to now; `found`: the place, when the job is due for us, whether the timer leaves it alone."""
    job = Packed("t", "a", NOW_S + due, TTR_S, "")
    stands = standing(job, [NOW_S + time for time in times], NOW_S, listed=listed)
    assert (stands.place, stands.due_s - NOW_S, stands.free) == found, reason
