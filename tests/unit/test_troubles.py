"""What goes wrong again and again, and when it is told."""

from delayqueue.domain.troubles import (
    FAILS_AFTER,
    FORGOTTEN_JOB_S,
    FORGOTTEN_S,
    HANGS_AFTER,
    Kind,
    TroubleReport,
    Troubles,
    merge_troubles,
)


class Now:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def told(troubles: Troubles) -> list[tuple[str, str, int]]:
    return [(one.kind, one.name, one.count) for one in troubles.report()]


def test_a_job_is_told_once_its_ttr_expired_again_and_again() -> None:
    troubles = Troubles(Now())
    for attempt in range(1, 13):
        troubles.note_timeout("t", "a", attempt, "")
        assert told(troubles) == ([("job", "a", attempt)] if attempt >= HANGS_AFTER else [])


def test_a_worker_that_lets_a_ttr_expire_is_told_at_once() -> None:
    troubles = Troubles(Now())
    troubles.note_timeout("t", "a", 1, "web1")
    troubles.note_timeout("t", "b", 1, "web1")
    assert told(troubles) == [("worker", "web1", 2)]


def test_a_subscriber_is_told_while_all_its_calls_fail() -> None:
    troubles = Troubles(Now())
    for _ in range(FAILS_AFTER):
        assert told(troubles) == []
        troubles.note(Kind.SUBSCRIBER, "mail", message="HTTP 503")
    assert told(troubles) == [("subscriber", "mail", FAILS_AFTER)]
    troubles.forget(Kind.SUBSCRIBER, "mail")
    assert told(troubles) == []


def test_it_is_forgotten_after_a_while_a_job_that_hangs_later() -> None:
    now = Now()
    troubles = Troubles(now)
    troubles.note(Kind.PUSHES, "1")
    troubles.note_timeout("t", "a", HANGS_AFTER, "")
    now.now_s = FORGOTTEN_S + 1
    assert told(troubles) == [("job", "a", HANGS_AFTER)]
    now.now_s = FORGOTTEN_JOB_S + 1
    assert told(troubles) == []


def test_what_several_processes_tell_is_added_but_attempts_are_not() -> None:
    job, pushes = TroubleReport("job", "a", count=3), TroubleReport("pushes", "1", count=3)
    later = (TroubleReport("job", "a", count=4), TroubleReport("pushes", "1", count=4))
    found = merge_troubles([(1.0, job), (2.0, pushes), (4.0, later[0]), (3.0, later[1])])
    assert [(at, one.kind, one.count) for at, one in found] == [(4.0, "job", 4), (3.0, "pushes", 7)]
