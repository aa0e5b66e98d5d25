"""What belongs to a connection."""

import math
from unittest.mock import Mock

from delayqueue.beanstalk.answers import Pending
from delayqueue.beanstalk.session import MOST_FORMER, MOST_WATCHED, Session
from delayqueue.beanstalk.tubes import DEFAULT, MOST_WATCHED_TOGETHER, NOT_COUNTED, Tubes
from delayqueue.beanstalk.verbs import touch
from delayqueue.domain.job import Reserved


def reserved(job_id: str, ttr_s: int = 10) -> Reserved:
    return Reserved("t", job_id, b"body", 1, "nonce", 0, ttr_s * 1000, None)


def test_a_tube_is_there_as_long_as_somebody_refers_to_it() -> None:
    tubes = Tubes()
    one, other = Session(tubes), Session(tubes)
    one.use("a")
    assert (one.watch("a"), one.watch("a"), other.watch("b")) == (2, 2, 2)
    assert {*tubes.names()} == {DEFAULT, "a", "b"}
    one.use("c")
    assert {*tubes.names()} == {DEFAULT, "a", "b", "c"}
    assert (one.ignore("a"), one.ignore("a"), one.ignore(DEFAULT)) == (1, 1, 0)
    one.close(0)
    other.close(0)
    assert tubes.names() == [DEFAULT]
    assert (tubes.default.users, tubes.default.watchers) == (0, 0)


def test_what_was_counted_for_a_tube_is_remembered_for_a_while() -> None:
    tubes = Tubes()
    for n in range(20_000):
        tubes.count(f"{n}").puts += 1
    assert tubes.find("0") is None
    found = tubes.find("19999")
    assert found
    assert found.puts == 1
    session = Session(tubes)
    session.use("19999")
    assert session.used is found


def test_a_connection_watches_so_many_tubes_at_most() -> None:
    tubes = Tubes()
    session = Session(tubes)
    for n in range(MOST_WATCHED - 1):
        assert session.watch(f"{n}") == n + 2
    assert session.watch("more") == 0
    assert session.watch("7") == MOST_WATCHED
    assert "more" not in tubes.names()


def test_all_connections_together_watch_so_many_tubes_beyond_the_first_few_of_each() -> None:
    tubes = Tubes()
    many = [Session(tubes) for _ in range(MOST_WATCHED_TOGETHER // (MOST_WATCHED - NOT_COUNTED))]
    for number, session in enumerate(many):
        for n in range(MOST_WATCHED - 1):
            assert session.watch(f"{number}-{n}")
    last = Session(tubes)
    watched = 1
    while count := last.watch(f"last-{watched}"):
        watched = count
    assert watched < MOST_WATCHED
    few = Session(tubes)
    assert [few.watch(f"few-{n}") for n in range(NOT_COUNTED)] == [*range(2, NOT_COUNTED + 1), 0]
    assert many[0].ignore("0-0")
    assert few.watch("instead") == NOT_COUNTED + 1
    assert last.watch("more") == 0
    for session in (*many, last, few):
        session.close(now=0)
    assert Session(tubes).watch("again") == 2
    assert tubes.watched_beyond == 0


def test_jobs_are_held_until_their_ttr_is_over() -> None:
    tubes = Tubes()
    session = Session(tubes)
    assert session.deadline(0) == math.inf
    for number, ttr_s in ((1, 10), (2, 5), (3, 20)):
        session.hold(number, reserved(str(number), ttr_s), now=0)
    assert session.deadline(1) == 5
    session.hold(4, reserved("4", 20), now=1)
    assert session.deadline(1) == 5
    server = Mock(loop=Mock(time=Mock(return_value=2)))
    answer = touch(server, session, 2)
    assert isinstance(answer, Pending)
    assert answer.read(None) == b"TOUCHED\r\n"
    assert session.deadline(1) == 7
    assert session.deadline(8) == 10
    assert session.take(2) is None
    assert tubes.timeouts == 1
    assert session.take(1)
    assert session.deadline(9) == 20
    assert {*session.close(20)} == {4}
    assert session.take(4) is None
    assert tubes.timeouts == 2


def test_a_job_that_is_reserved_again_has_its_new_deadline() -> None:
    session = Session(Tubes())
    session.hold(1, reserved("1"), now=0)
    assert session.deadline(0) == 10
    session.hold(1, reserved("1"), now=5)
    assert session.deadline(6) == 15


def test_a_connection_knows_the_last_jobs_whose_ttr_is_over() -> None:
    session = Session(Tubes())
    for number in range(MOST_FORMER + 1):
        session.hold(number, reserved(str(number)), now=0)
    assert session.deadline(10) == math.inf
    assert session.take_former(0) is None
    former = session.take_former(1)
    assert former
    assert former.job.id == "1"
    assert session.take_former(1) is None
    session.hold(2, reserved("2"), now=10)
    assert session.take_former(2) is None
