"""Deliberate faults: puts each into a copy of the code, and says which of them no test finds.

`python -m tests.mutants` tries all of them, `python -m tests.mutants pop layout` those whose file or reason has one of
these words; with `--quick`, only tests of `make test`. Exit status 1: a fault was not found, or its place is gone.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.processes import REPOSITORY

PACKAGE: Final = "delayqueue"
IGNORED: Final = shutil.ignore_patterns(".git", ".venv", "__pycache__", "build", "dist", ".*_cache")
LONGEST_S: Final = 900
QUICK: Final = "--quick"
MATCHING: Final = (
    "tests/engine/test_matcher.py tests/engine/test_matcher_model.py tests/engine/test_polls.py"
)
MOVING: Final = (
    "tests/engine/test_router.py tests/engine/test_rebalance.py tests/engine/test_moves.py"
)
EXCHANGES: Final = (
    "tests/store/test_torn_exchanges.py tests/store/test_pipeline.py tests/store/test_links.py"
)


class Mutant(NamedTuple):
    """A fault: `old` stands once in the file, `new` takes its place. The tests in `tests` should find it."""

    file: str
    old: str
    new: str
    why: str
    tests: str


def script(name: str, old: str, new: str, why: str, tests: str = "tests/store") -> Mutant:
    return Mutant(f"store/scripts/{name}.lua", old, new, why, tests)


MUTANTS: Final = [
    # scripts
    script(
        "push",
        "or other and is_strict then",
        "then",
        "replaces the job of another topic although told not to",
        "tests/store/test_push.py",
    ),
    script(
        "push",
        "return job.due > now or timer and timer <= now and not job.is_late",
        "return job.due > now",
        "a job that is due now overtakes those that are due and not moved",
        "tests/store/test_push.py tests/store/test_enqueue_due.py",
    ),
    script(
        "push",
        "job.created = former.created + 1",
        "job.created = now",
        "two pushes of an id have one time",
        "tests/store/test_push.py tests/store/test_repeats.py",
    ),
    script(
        "push",
        "if job.expire > 0 then call('ZCARD', expire_key(topic)) end",
        "",
        "writes half of a job before it meets a broken key",
        "tests/store/test_broken_keys.py tests/store/test_push.py",
    ),
    script(
        "pop",
        "local standing = others == 0 and call(",
        "local standing = call(",
        "the only group of those that had their turn goes on before those that have not",
        "tests/store/test_groups.py tests/store/test_groups_in_line.py",
    ),
    script(
        "pop",
        "return #standing == 1 and standing[1] or nil",
        "return standing[1]",
        "the first of several groups has all turns",
        "tests/store/test_groups.py tests/store/test_groups_in_line.py",
    ),
    script(
        "pop",
        "for i = 2, kind == line and 0 or #entries, 2 do",
        "for i = 2, #entries, 2 do",
        "the only group leaves the line when it has had a turn",
        "tests/store/test_groups.py tests/store/test_groups_in_line.py",
    ),
    script(
        "push",
        "  redis.pcall('ZREM', set_of(job), rank_of(id, job))\n",
        "",
        "a push that a broken key prevents leaves its place",
        "tests/store/test_groups_in_line.py",
    ),
    script(
        "push",
        "  redis.pcall('HDEL', PRIORITIES, id)\n",
        "",
        "a push that a broken key prevents leaves its priority",
        "tests/store/test_groups_in_line.py",
    ),
    script(
        "pop",
        "not job or job.topic ~= topic or reserved[i]",
        "not job or reserved[i]",
        "delivers a job of another topic for a ghost",
        "tests/store/test_pop.py tests/store/test_push.py",
    ),
    script(
        "pop",
        "elseif job.expire > 0 and job.expire <= now then",
        "elseif job.expire > 0 and job.expire < 0 then",
        "delivers a job that has expired",
        "tests/store/test_pop.py tests/store/test_tick.py",
    ),
    script(
        "pop",
        "call('LTRIM', queue, int(#ids), '-1')",
        "call('LTRIM', queue, int(#listed), '-1')",
        "loses jobs that it looked at and had no room for",
        "tests/store/test_pop.py tests/store/test_pieces.py tests/store/test_limits.py",
    ),
    script(
        "pop",
        "if firsts[i] and (not best or firsts[i] < firsts[best])",
        "if firsts[i] and (not best or firsts[i] <= firsts[best])",
        "the last topic wins a tie of priorities",
        "tests/store/test_peek.py tests/store/test_priority.py",
    ),
    script(
        "tick",
        "if not pcall(act, id) then",
        "act(id) if false then",
        "one broken job delays all others",
        "tests/store/test_tick.py tests/store/test_broken_keys.py",
    ),
    script(
        "tick",
        "settings.paused_until = nil\n",
        "",
        "a pause that is over stays in the settings",
        "tests/store/test_limits.py tests/store/test_topics.py tests/store/test_tick.py tests/store/test_model.py",
    ),
    script(
        "tick",
        "are_all and oldest[last] or latest[i] end",
        "oldest[last] end",
        "a topic waits behind many that are due longer",
        "tests/store/test_tick.py",
    ),
    script(
        "_job",
        "run.step, run.receipt = run.step + 1, '-'",
        "run.step = run.step + 1",
        "a receipt still counts when its reservation has failed",
        "tests/store/test_release.py tests/store/test_tick.py tests/store/test_model.py",
    ),
    script(
        "_job",
        "if shift > 0 or run_of(id).attempt == 0 then",
        "do",
        "a retry that is moved closer expires sooner",
        "tests/store/test_reschedule.py tests/store/test_kick.py",
    ),
    script(
        "_job",
        "if not result.ok then result.attempts, result.due = 0, 0 end",
        "result.attempts, result.due = 0, 0",
        "a kick forgets what subscribers that succeeded have done",
        "tests/store/test_kick.py tests/store/test_record.py tests/store/test_reschedule.py tests/delivery",
    ),
    script(
        "_job",
        "not delay and is_early(job, run) and job.due or now",
        "now",
        "a job that was reserved early comes back before it is due",
        "tests/store/test_release.py tests/store/test_repeats.py tests/store/test_model.py",
    ),
    script(
        "_wheel",
        "if first >= turn_end or #ids >= limit then break end",
        "if #ids >= limit then break end",
        "after a downtime, jobs become ready out of order",
        "tests/store/test_wheel.py tests/store/test_enqueue_due.py",
    ),
    script(
        "_wheel",
        "if not first or first >= due then reset_slot(topic, slot) end",
        "",
        "the wheel stops at a slot whose first job was removed",
        "tests/store/test_wheel.py",
    ),
    script(
        "_limits",
        "wanted = math.min(wanted, share.concurrency - call('ZCARD', reserved_key(topic)))",
        "wanted = math.min(wanted, share.concurrency)",
        "a topic's limit counts each pop anew",
        "tests/store/test_limits.py",
    ),
    script(
        "_shares",
        "(number < rest and 1 or 0)",
        "0",
        "the rest of a limit that is divided among buckets is lost",
        "tests/store/test_limits.py tests/api/test_shared_limits.py",
    ),
    script(
        "_end",
        "if created ~= '' and tonumber(created) ~= job.created then",
        "if created == nil then",
        "a late delete ends a job that was pushed since",
        "tests/store/test_repeats.py tests/store/test_finish.py tests/store/test_take.py tests/beanstalk",
    ),
    script(
        "bury",
        "if state == 'reserved' then note(run, message, holder_of(id, run.receipt)) else remark(run, message) end",
        "note(run, message, holder_of(id, run.receipt))",
        "burying a job that nobody holds counts as an attempt",
        "tests/store/test_record.py tests/store/test_dead_letters.py tests/store/test_model.py",
    ),
    script(
        "sweep",
        "call('ZADD', key, int(now), id)",
        "call('ZREM', key, id)",
        "drops a buried job that it cannot end",
        "tests/store/test_buried_retain.py tests/store/test_broken_keys.py",
    ),
    # the store
    Mutant(
        "store/store.py",
        "and verb.lost is not None and not all_failed",
        "and verb.lost is not None",
        "a call says that each of its jobs failed, not that the store does not answer",
        "tests/engine/test_router.py",
    ),
    Mutant(
        "store/bucket.py",
        "if (found_ms := told_by(error)) is not None:",
        "if False:",
        "a call that came too late by an unknown clock is not made again",
        "tests/store/test_late_calls.py tests/store/test_repeats.py",
    ),
    Mutant(
        "store/bucket.py",
        "self._store.be_outdated(call.generation)",
        "pass",
        "a process goes on with a layout that a bucket has refused",
        "tests/store/test_repeats.py tests/engine/test_rebalance.py",
    ),
    Mutant(
        "store/connection.py",
        "if len(held) <= len(self.calls):\n                return",
        "pass",
        "calls are answered before the replicas have them",
        "tests/store/test_pipeline.py tests/store/test_replication.py",
    ),
    Mutant(
        "store/server.py",
        "self._overtaken.add(self._busy.pop(0))",
        "pass",
        "an exchange that takes long is not overtaken on another connection",
        "tests/store/test_pipeline.py",
    ),
    Mutant(
        "store/server.py",
        "self._go_on_with(link)  # other connections may never be made",
        "",
        "a connection that was overtaken is never given back",
        EXCHANGES,
    ),
    Mutant(
        "store/server.py",
        "finally:\n                self._attempts -= 1",
        "finally:\n                pass",
        "an attempt to connect counts for ever",
        EXCHANGES,
    ),
    Mutant(
        "store/connection.py",
        "in zip(calls, answers, strict=True):\n            if call is None",
        "in zip(calls[::-1], answers, strict=True):\n            if call is None",
        "calls of an exchange get each other's answers",
        EXCHANGES,
    ),
    Mutant(
        "store/connection.py",
        "self._held = []  # an idle link refers to nothing of its last exchange",
        "pass",
        "answers of an exchange that waited for replicas are those of the next one, too",
        EXCHANGES,
    ),
    Mutant(
        "store/connection.py",
        "self.calls[at] = None",
        "self.calls.remove(call)",
        "the late answer of a call that was given up goes to another one",
        EXCHANGES,
    ),
    Mutant(
        "store/connection.py",
        "            link.close()\n        self._places.release()",
        "            link.close()\n            return\n        self._places.release()",
        "the place of a connection that broke stays taken",
        EXCHANGES,
    ),
    Mutant(
        "store/store.py",
        "except Exception as error:\n                self._fail(requests, generation, error)",
        "except UnicodeEncodeError as error:\n                self._fail(requests, generation, error)",
        "a listener that fails takes the answers of the other calls",
        "tests/store/test_repeats.py",
    ),
    Mutant(
        "store/store.py",
        "if generation == self._bucket.buckets.layout.generation:",
        "if True:",
        "the rest of a request is done by another layout than its beginning",
        "tests/engine/test_batcher.py",
    ),
    Mutant(
        "store/store.py",
        "self._piece = done + done // 8 + 1",
        "self._piece = sys.maxsize",
        "sends all items again when a call has not got to all",
        "tests/engine/test_batcher.py tests/store/test_pieces.py",
    ),
    Mutant(
        "store/store.py",
        "size_bytes > most_bytes or ",
        "",
        "joins bodies of any size into a call",
        "tests/engine/test_batcher.py",
    ),
    Mutant(
        "store/change.py",
        "self._buckets.know(max(self._size, self._former.size, *self._former.former_sizes))",
        "self._buckets.know(self._size)",
        "the fence of a bucket that goes is not raised",
        MOVING,
    ),
    Mutant(
        "store/change.py",
        'if await self._eval(RAISE, keys.named("fence"), generation) != generation:\n'
        "                    raise AnotherChange",
        'await self._eval(RAISE, keys.named("fence"), generation)',
        "a change that was overtaken at its beginning goes on",
        MOVING,
    ),
    Mutant(
        "engine/rebalance.py",
        "if job_id in seen:",
        "if False:",
        "ready jobs stay doubled if an import was made again",
        MOVING,
    ),
    Mutant(
        "store/store.py",
        "buckets.on_change(self._fail_waiting)",
        "",
        "what waited by the former layout is done by the new one",
        MOVING,
    ),
    Mutant(
        "server/store_opening.py",
        "if store.closed is None:\n                await self._look()",
        "",
        "a server that stays up after a wipe does not claim its layout",
        "tests/api/test_wiped_store.py",
    ),
    # the engine
    Mutant(
        "engine/matcher.py",
        "elif over := queue.note_dry(bucket, request.last_number):",
        "elif over := queue.note_dry(bucket, queue.last_number):",
        "a bucket answers polls that came after the question",
        MATCHING,
    ),
    Mutant(
        "engine/matcher.py",
        "request.queue.unasked[bucket] += request.unasked\n            self._offer",
        "self._offer",
        "polls wait for ever when a call has failed",
        MATCHING,
    ),
    Mutant(
        "engine/wait_queue.py",
        "if self.last_number > self.dry_up_to[bucket]:",
        "if self.last_number < 0:",
        "a poll whose jobs went to an older one is forgotten",
        MATCHING,
    ),
    Mutant(
        "engine/timer.py",
        "at = max(at, self._rested_at)",
        "pass",
        "ticks without a rest while due times are close",
        "tests/engine/test_timer.py",
    ),
    Mutant(
        "engine/timer.py",
        "self.arm(round(RETRY_S * 1000))",
        "pass",
        "after a failure, the timer tries again only a second later",
        "tests/engine/test_timer.py",
    ),
    # requests
    Mutant(
        "web/head.py",
        '"transfer-encoding", "content-encoding", "expect"',
        '"transfer-encoding", "expect"',
        "reads a compressed body as it is",
        "tests/unit/test_head.py tests/api/test_both_ways.py tests/unit/test_express.py",
    ),
    Mutant(
        "web/head.py",
        "if name in headers:\n            return None",
        "",
        "of two lengths, the last one counts",
        "tests/unit/test_head.py tests/api/test_both_ways.py",
    ),
    Mutant(
        "web/parse.py",
        'commas += raw.count(b",", end)\n        if',
        "if",
        "does not count the members behind the last text",
        "tests/unit/test_parse.py tests/api/test_bad_json.py",
    ),
    Mutant(
        "web/parse.py",
        "elif value is not None:\n            read[field] = value",
        "else:\n            read[field] = value",
        "null takes the place of a value in another spelling",
        "tests/unit/test_parse.py tests/api/test_warnings.py",
    ),
    Mutant(
        "web/fields.py",
        "most_bytes > limit_bytes and (size",
        "len(text) > limit_bytes and (size",
        "counts characters where the limit is in bytes",
        "tests/unit/test_refusals.py tests/unit/test_long_texts.py",
    ),
    Mutant(
        "web/fields.py",
        "    if ms(value_s) == 0:",
        "    if value_s == 0:",
        "takes a duration that is rounded to 0, which means something else",
        "tests/unit/test_refusals.py",
    ),
    Mutant(
        "web/auth.py",
        "if not scope.entries:\n            raise Forbidden(WRONG_ROLE)",
        "",
        "a token calls what its role may not",
        "tests/unit/test_auth.py tests/api/test_access.py tests/api/test_tokens.py",
    ),
    Mutant(
        "web/auth.py",
        "former = self._principals if rate == self._rate else {}",
        "former = {}",
        "a reload gives each token its whole burst again",
        "tests/unit/test_auth.py tests/api/test_reloading.py tests/api/test_access.py",
    ),
    Mutant(
        "web/auth.py",
        "self._principals = principals",
        "self._principals |= principals",
        "a token that a reload removes stays in force",
        "tests/api/test_reloading.py",
    ),
    Mutant(
        "web/proxy_login.py",
        "if not self._believes(request.peer):",
        "if False:",
        "anybody can claim to be a user whom the proxy has logged in",
        "tests/unit/test_proxy_login.py tests/api/test_proxy_login.py",
    ),
    Mutant(
        "server/reload.py",
        "if stamps == self._seen.get(files) != self._read.get(files):",
        "if stamps != self._read.get(files) and files in self._read:",
        "a file that changed before the first look is not read again",
        "tests/unit/test_reload.py",
    ),
    Mutant(
        "domain/access.py",
        'topic.startswith(entry[:-1]) if entry.endswith("*")',
        'topic.startswith(entry[:-1]) and topic != entry[:-1] if entry.endswith("*")',
        "a prefix does not reach the topic that is the prefix",
        "tests/unit/test_grants.py tests/unit/test_auth.py tests/store/test_scope.py tests/api/test_tokens.py",
    ),
    Mutant(
        "beanstalk/parser.py",
        "self._is_too_long = True\n            at += LINE_BYTES",
        "at += LINE_BYTES",
        "runs the end of a line that is too long",
        "tests/beanstalk/test_parser.py tests/beanstalk/test_transcripts.py",
    ),
    Mutant(
        "beanstalk/parser.py",
        "self._skip_bytes, self._skipping = missing, GIVEN_UP",
        "self._skip_bytes, self._skipping = missing + len(self._body), GIVEN_UP",
        "swallows what follows a put that it gave up",
        "tests/beanstalk/test_parser.py tests/beanstalk/test_bounds.py",
    ),
    # rules
    Mutant(
        "domain/retry.py",
        "min(cap_ms, base_ms * factor**step) for step in range(steps)",
        "min(cap_ms, base_ms * factor ** (step + 1)) for step in range(steps)",
        "the first delay is the second one",
        "tests/unit/test_retry.py",
    ),
    Mutant(
        "domain/schedule.py",
        "time_ms = self.after(now_ms - LATE_MS - 1)",
        "time_ms = self.after(now_ms - LATE_MS)",
        "misses an occurrence that is just not late",
        "tests/unit/test_schedule.py tests/delivery/test_schedules.py",
    ),
    Mutant(
        "domain/cron.py",
        "looks = [time_s + step * REPETITION_S]",
        "looks: list[int] = []",
        "misses times that a clock, put back, shows again",
        "tests/unit/test_cron.py",
    ),
    # the client
    Mutant(
        "client/api_request.py",
        "if has_failed and request.repeatable else None",
        "if has_failed else None",
        "repeats a call that may have been carried out",
        "tests/client/test_repeats.py tests/client/test_transport.py",
    ),
    Mutant(
        "client/api_request.py",
        "if lost is not None and request.gone_is_done:",
        "if request.gone_is_done:",
        "a first call for a job that is gone succeeds",
        "tests/client/test_repeats.py tests/client/test_transport.py tests/client/test_verbs.py",
    ),
    Mutant(
        "client/api_request.py",
        "return min(float(asked), MOST_ASKED_S) if asked",
        "return float(asked) if asked",
        "waits a day if the server says so",
        "tests/client/test_strangers.py",
    ),
]


def main() -> int:
    words = [word for word in sys.argv[1:] if word != QUICK]
    options = sys.argv[1:].count(QUICK) * [QUICK]
    wanted = [
        mutant
        for mutant in MUTANTS
        if not words or any(word in f"{mutant.file} {mutant.why}" for word in words)
    ]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        shutil.copytree(REPOSITORY, copy, ignore=IGNORED)
        for mutant in wanted:
            found = try_out(mutant, copy, options)
            missed += not found.startswith("tests/")
            sys.stdout.write(f"{mutant.file}: {mutant.why}: {found}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(wanted) - missed} of {len(wanted)} found\n")
    return int(missed > 0)


def try_out(mutant: Mutant, copy: Path, options: list[str]) -> str:
    """The first test that fails with the fault, and not without it; or why there is none."""
    path = copy / PACKAGE / mutant.file
    sound = path.read_text("utf-8")
    if sound.count(mutant.old) != 1:
        return "ITS PLACE IS GONE: choose another one"
    path.write_text(sound.replace(mutant.old, mutant.new), "utf-8")
    try:
        failed = first_failure(copy, [*options, *mutant.tests.split()])
    except subprocess.TimeoutExpired:
        return "NOT FOUND in time"
    finally:
        path.write_text(sound, "utf-8")
    if failed is None:
        return "NOT FOUND"
    return (
        failed
        if first_failure(copy, [*options, failed]) is None
        else f"without it, too, fails {failed}"
    )


def first_failure(copy: Path, tests: list[str]) -> str | None:
    """The first of these tests that fails, None if they pass; with options of pytest before them."""
    command = [sys.executable, "-m", "pytest", "-x", "-rfE", "-p", "no:cacheprovider", *tests]
    ended = subprocess.run(
        command, cwd=copy, capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    if ended.returncode in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", ended.stdout, re.MULTILINE)
    assert failed, ended.stdout[-1000:] + ended.stderr
    return failed[1]


if __name__ == "__main__":
    sys.exit(main())
