"""The PHP worker: what it does with jobs, and what becomes of them when it, the server or the store dies."""

import asyncio
import signal
import subprocess
import time
from contextlib import ExitStack
from random import Random
from typing import Final, Self

import pytest

from delayqueue import Client
from delayqueue.answers.jobs import JobDetails
from delayqueue.client import Job
from tests.partner import Answer, Partner
from tests.processes import Processes, QueueServer, StoreServer
from tests.waiting import until

from .project import COMMAND_S, DEBIAN, Project, needs, needs_debian

WORKER: Final = """<?php
require __DIR__ . '/vendor/autoload.php';

use DelayQueue\\Client\\{Client, Job, Worker};
use DelayQueue\\Client\\Worker\\{Bury, Retry};

/** Keeps a line, whatever happens to this process afterwards. */
function note(string $line): void
{
    file_put_contents(__DIR__ . '/notes', "$line\\n", FILE_APPEND | LOCK_EX);
}

/** Waits until the test makes the file. */
function wait_for(string $file): void
{
    while (!file_exists(__DIR__ . "/$file")) {
        usleep(10_000);
        clearstatcache();
    }
}

"""
GONE: Final = "ttr expired"


class Running:
    """A worker in a process of its own; `with` ends it."""

    def __init__(self, project: Project, server: QueueServer, *options: str, code: str) -> None:
        needs("setpriv")
        self._log = project.folder / f"log-{time.monotonic_ns()}"
        project.write("worker.php", WORKER + code)
        program = ("php", "vendor/bin/delay-queue-worker", *options, "worker.php")
        with self._log.open("wb") as out:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *program],
                cwd=project.folder,
                env=project.environment(DELAYQUEUE_URL=server.url),
                stdout=out,
                stderr=out,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    async def says(self, text: str) -> None:
        """Wait until its log has the text."""
        await until(lambda: text in self.log(), within_s=COMMAND_S)

    async def ended(self) -> int:
        """Its exit status, once it has ended."""
        await until(lambda: self.process.poll() is not None, within_s=COMMAND_S)
        return self.process.wait()


async def ran(project: Project, server: QueueServer, *options: str, code: str) -> str:
    """Run a worker to its end, after a job if nothing else is said. Returns its log."""
    with Running(project, server, *(options or ["--max-jobs=1"]), code=code) as worker:
        assert await worker.ended() == 0
        return worker.log()


def notes(project: Project) -> list[str]:
    path = project.folder / "notes"
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def got(queue: Client, job_id: str) -> JobDetails:
    job = queue.get(job_id)
    assert job is not None
    return job


def messages(queue: Client, job_id: str) -> list[str]:
    return [attempt.message for attempt in got(queue, job_id).attempts]


@pytest.fixture
def project(project: Project) -> Project:
    """Without what an earlier test has left there."""
    for name in ("notes", "go"):
        (project.folder / name).unlink(missing_ok=True)
    return project


async def test_a_handler_tells_how_far_its_job_is_and_a_failed_one_shows_where_it_stood(
    project: Project, server: QueueServer, queue: Client
) -> None:
    queue.push("orders", id="far")
    code = """
    return (new Worker())->on('orders', function (Job $job): void {
        $job->progress(10, 'page 1 of 10');
        note('begun');
        wait_for('go');
        foreach (range(2, 9) as $page) {
            $job->progress(10 * $page, "page $page of 10");
        }
        $job->progress(NAN, 'no JSON');
        $job->progress(null, "\xca no UTF-8");
        $job->progress(95);
        throw new DomainException('no page 10');
    }, retry: ['1h']);
    """
    with Running(project, server, "--max-jobs=1", code=code) as worker:
        await until(lambda: notes(project) == ["begun"], within_s=COMMAND_S)
        progress = got(queue, "far").progress
        assert progress is not None
        assert (progress.percent, progress.message) == (10, "page 1 of 10")
        (project.folder / "go").touch()
        assert await worker.ended() == 0
    job = got(queue, "far")
    assert job.progress is not None
    assert (job.state, job.progress.percent, job.progress.message) == ("delayed", 95, "")
    assert [first for first, *_ in map(str.splitlines, messages(queue, "far"))] == [
        "DomainException: no page 10"
    ]


async def test_jobs_end_as_their_handlers_do(
    project: Project, server: QueueServer, queue: Client
) -> None:
    bodies = {
        "done": '{"order":1001}',
        "fails": '{"order":0}',
        "later": '{"order":-1}',
        "hopeless": '{"order":-2}',
        "poison": "no json",
        "gbk": '{"order":-3}',
    }
    for name, body in bodies.items():
        queue.push("orders", body, id=f"as-{name}", retain=600)
    code = """
    function close(int $order): string
    {
        return match (true) {
            $order > 0 => "closed order $order",
            $order === -1 => throw new Retry('1h', 'not yet'),
            $order === -2 => throw new Bury('no such order'),
            $order === -3 => throw new RuntimeException("\\xca\\xa7\\xb0\\xdc"),
            default => throw new DomainException("no order $order"),
        };
    }

    return (new Worker())->on('orders', fn (Job $job) => close($job->json()['order']), retry: ['1m', '1h']);
    """
    began_s = time.time()
    await ran(project, server, "--max-jobs=6", code=code)
    jobs = {name: got(queue, f"as-{name}") for name in bodies}
    assert (jobs["done"].state, jobs["done"].message) == ("finished", "closed order 1001")
    assert jobs["fails"].state == "delayed"
    assert began_s + 50 < jobs["fails"].due < time.time() + 70
    first, second, *_ = jobs["fails"].message.splitlines()
    assert first == "DomainException: no order 0"
    assert second.startswith(f"at {project.folder}/worker.php:")
    assert (jobs["later"].state, jobs["later"].message) == ("delayed", "not yet")
    assert jobs["later"].due > began_s + 3000
    assert (jobs["hopeless"].state, jobs["hopeless"].message) == ("buried", "no such order")
    assert jobs["poison"].state == "buried"
    assert jobs["poison"].message == "the body is not JSON: Syntax error"
    assert jobs["gbk"].state == "delayed"
    assert "\ufffd" in jobs["gbk"].message


async def test_a_topic_with_blanks_around_it_is_the_one_without(
    project: Project, server: QueueServer, queue: Client
) -> None:
    """The server understands it so, and hands out its jobs under that name."""
    queue.push("padded", id="padded-1", retain=600)
    code = "return (new Worker())->on(' padded ', fn (Job $job) => note($job->topic));"
    await ran(project, server, code=code)
    assert (notes(project), got(queue, "padded-1").state) == (["padded"], "finished")


SEVERAL: Final = """
    function make_invoice(Job $job): string
    {
        note("$job->id:invoice");

        return "I-$job->body";
    }

    function add_points(Job $job): array
    {
        note("$job->id:points");

        return match ($job->body) {
            'exits' => exit(),
            'hopeless' => throw new Bury('no customer'),
            'fails' => throw new RuntimeException('no account'),
            default => ['points' => 4, 'for' => $job->results['make_invoice']->message],
        };
    }

    $mail = function (Job $job): string {
        note("$job->id:mail");
        $job->body === 'fails' && throw new Retry('1h', 'not yet');

        return implode(', ', array_map(fn ($one) => "$one->succeeded $one->message", $job->results));
    };
    """


async def test_several_handlers_run_in_order_until_one_fails_and_the_job_says_which(
    project: Project, server: QueueServer, queue: Client
) -> None:
    code = f"{SEVERAL} return (new Worker())->on('paid', [make_invoice(...), 'add_points', $mail]);"
    bodies = ("1001", "fails", "hopeless", "exits")
    for body in bodies:
        queue.push("paid", body, id=f"paid-{body}", retain=600)
    await ran(project, server, "--max-jobs=3", code=code)
    await ran(project, server, code=code)
    done, fails, hopeless, exits = (got(queue, f"paid-{body}") for body in bodies)
    points = '{"points":4,"for":"I-1001"}'
    assert done.message == f"I-1001; {points}; 1 I-1001, 1 {points}"
    first, second, *_ = fails.message.splitlines()
    assert first == "add_points: RuntimeException: no account"
    assert second.startswith(f"at {project.folder}/worker.php:")
    assert (hopeless.state, hopeless.message) == ("buried", "add_points: no customer")
    assert exits.message == "add_points: the handler has ended the program: exit or die"
    assert [note for note in notes(project) if note.endswith(":mail")] == ["paid-1001:mail"]


async def test_the_handlers_behind_one_that_failed_run_if_they_shall(
    project: Project, server: QueueServer, queue: Client
) -> None:
    code = f"""{SEVERAL}
    return (new Worker())
        ->on('on', ['points' => 'add_points', 'mail' => $mail], stopOnFailure: false)
        ->on('both', [fn () => throw new Retry(60, 'a'), fn () => throw new Retry(5, 'b')], stopOnFailure: false);
    """
    queue.push("on", "fails", id="on-1")
    queue.push("on", "hopeless", id="on-2")
    queue.push("both", id="both-1")
    began_s = time.time()
    await ran(project, server, "--max-jobs=3", code=code)
    assert got(queue, "on-1").message.splitlines()[0] == (
        "points: RuntimeException: no account; mail: not yet"
    )
    hopeless = got(queue, "on-2")
    assert (hopeless.state, hopeless.message) == ("buried", "points: no customer")
    both = got(queue, "both-1")
    assert both.message == "handler 1: a; handler 2: b"
    assert began_s < both.due <= time.time() + 5
    assert [note for note in notes(project) if note.endswith(":mail")] == ["on-1:mail", "on-2:mail"]
    queue.delete("both-1")


ENDS: Final = [
    ("exit", "exit(0);", "the handler has ended the program: exit or die", 0),
    ("die", "die('enough');", "the handler has ended the program: exit or die", 0),
    ("memory", "for ($all = ''; ; ) { $all .= str_repeat('x', 1 << 20); }", "Allowed memory size of", 255),
    ("many", "for ($all = []; ; ) { $all[] = [1]; }", "Allowed memory size of", 255),
    ("class", "new class () implements Countable {};", "Class Countable@anonymous", 255),
    ("time", "set_time_limit(1); for (;;) { }", "Maximum execution time of 1 second", 255),
    ("error", "none();", "Error: Call to undefined function none()", None),
    ("generator", "yield 1;", "the handler returned a Generator, which nobody runs", None),
]  # fmt: skip


async def test_a_handler_that_ends_the_program_has_failed_its_job(
    project: Project, server: QueueServer, queue: Client
) -> None:
    handlers = "".join(f"->on('{name}', function () {{ {line} }})" for name, line, _, _ in ENDS)
    code = f"ini_set('memory_limit', '32M'); return (new Worker()){handlers};"
    for name, _, message, status in ENDS:
        queue.push(name, id=f"ends-{name}", ttr=600)
        with Running(project, server, "--max-jobs=1", code=code) as worker:
            assert await worker.ended() == (status or 0), name
        job = got(queue, f"ends-{name}")
        assert (job.state, job.attempt) in {("delayed", 1), ("ready", 1)}, name  # for a second
        assert job.message.startswith(message), job.message
        queue.delete(f"ends-{name}")


async def test_a_fork_of_a_handler_says_nothing_about_its_job(
    project: Project, server: QueueServer, queue: Client
) -> None:
    code = """
    return (new Worker())->on('fork', function () {
        $child = pcntl_fork();
        $child === 0 && exit(1);
        pcntl_waitpid($child, $status);
        note(pcntl_wexitstatus($status));
    });
    """
    queue.push("fork", id="fork-1", retain=600)
    await ran(project, server, code=code)
    assert notes(project) == ["1"]
    assert (got(queue, "fork-1").state, messages(queue, "fork-1")) == ("finished", [])


async def test_a_job_that_kills_its_worker_again_and_again_is_buried(
    project: Project, server: QueueServer, queue: Client
) -> None:
    code = """
    return (new Worker())->on('killer', function () {
        note('dies');
        posix_kill(getmypid(), SIGKILL);
    }, retry: ['1s']);
    """
    queue.push("killer", id="killer-1", ttr=3)
    for _ in range(2):
        with Running(project, server, code=code) as worker:
            assert await worker.ended() == -signal.SIGKILL
    await ran(project, server, code=code)
    assert notes(project) == ["dies"] * 2
    assert got(queue, "killer-1").state == "buried"
    assert messages(queue, "killer-1") == [GONE, GONE, "its worker has died 2 times"]
    queue.delete("killer-1")


async def test_a_long_handler_keeps_its_job(
    project: Project, server: QueueServer, queue: Client
) -> None:
    code = """
    return (new Worker())->on('long', function () {
        for ($end = microtime(true) + 8; microtime(true) < $end;) {
            usleep(50_000);
        }
        note('ran');
    });
    """
    queue.push("long", id="long-1", ttr=6, retain=600)
    await ran(project, server, code=code)
    assert (got(queue, "long-1").state, got(queue, "long-1").attempt) == ("finished", 1)
    assert notes(project) == ["ran"]


async def test_a_job_that_is_cancelled_meanwhile_disturbs_nothing(
    project: Project, server: QueueServer, queue: Client
) -> None:
    code = """
    return (new Worker())->on('cancelled', function (Job $job) {
        (new Client())->delete($job->id);
        $end = microtime(true) + 2;
        while (microtime(true) < $end) {
            usleep(50_000);
        }
    });
    """
    queue.push("cancelled", id="cancelled-1")
    log = await ran(project, server, code=code)
    assert "job cancelled-1 no longer belongs to this worker" in log
    assert "took longer than its TTR, or was cancelled" in log
    assert queue.get("cancelled-1") is None


async def test_sigterm_ends_a_worker_after_its_job_and_an_idle_one_at_once(
    project: Project, server: QueueServer, queue: Client
) -> None:
    code = "return (new Worker())->on('term', function () { note('runs'); wait_for('go'); });"
    queue.push("term", id="term-1", retain=600)
    queue.push("term", id="term-2")
    with Running(project, server, code=code) as worker:
        await until(lambda: notes(project) == ["runs"])
        worker.process.terminate()
        await asyncio.sleep(0.1)  # it goes on
        (project.folder / "go").touch()
        assert await worker.ended() == 0
    assert (got(queue, "term-1").state, got(queue, "term-2").attempt) == ("finished", 0)
    queue.delete("term-2")
    with Running(project, server, code=code) as worker:
        await worker.says("waiting for jobs of term")
        await until(lambda: queue.stats().servers[0].waiting == 1, within_s=COMMAND_S)
        began = time.monotonic()
        worker.process.terminate()
        assert await worker.ended() == 0
        assert time.monotonic() - began < 20  # its poll would have lasted 30 s


async def test_a_worker_that_is_to_end_still_tells_how_its_job_ended(
    project: Project, processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server, language="en")
    code = """
    return (new Worker())->on('last', function () {
        note('runs');
        wait_for('go');
        throw new RuntimeException('no order');
    }, retry: ['1h']);
    """
    with Client(server.url) as queue, Running(project, server, code=code) as worker:
        queue.push("last", id="last-1", ttr=600)
        await until(lambda: notes(project) == ["runs"])
        server.kill()
        worker.process.terminate()
        (project.folder / "go").touch()
        await worker.says("cannot tell the server that it is released")
        await asyncio.sleep(1)  # it does not ask without a pause
        assert worker.log().count("cannot tell") < 10
        server.start()
        assert await worker.ended() == 0
        assert got(queue, "last-1").state == "delayed"
        assert got(queue, "last-1").message.startswith("RuntimeException: no order")


def test_a_report_that_something_else_answers_again_and_again_is_given_up(project: Project) -> None:
    """Such as a firewall that takes a trace for an attack: the worker would do nothing else any more."""
    clock = """
    eval('namespace DelayQueue\\Client\\Worker; // pauses take no time
        function hrtime(bool $asNumber): int { return \\hrtime($asNumber) + usleep(0) * 1000; }
        function usleep(int $microseconds): int { static $slept = 0; return $slept += $microseconds; }');
    """
    code = "return (new Worker())->on('t', fn () => throw new Exception('SELECT'), retry: ['1s']);"
    job = '{"topic":"t","id":"a","body":"","attempt":1,"receipt":"r","due":0}'
    popped = Answer(200, f'{{"code":0,"message":"ok","data":{job}}}')
    with Partner(popped, Answer(502, "<html>"), Answer(403, "<html>Forbidden</html>")) as partner:
        project.write("worker.php", WORKER + clock + code)
        words = ("php", "vendor/bin/delay-queue-worker", "--max-jobs=1", "worker.php")
        said = project.run(*words, DELAYQUEUE_URL=partner.url)
    assert "job a is delivered again, because no server has taken its end" in said
    assert 5 < [path for path, _ in partner.heads].count("/release") < 15


@pytest.mark.parametrize("logger", ["null", "new Full()"], ids=["stderr", "logger"])
def test_a_worker_whose_log_takes_no_line_works_all_the_same(
    project: Project, queue: Client, logger: str
) -> None:
    """Frameworks make exceptions of warnings, as Monolog does of errors."""
    needs_debian("Psr/Log/autoload.php")
    code = f"""<?php require 'vendor/autoload.php';
    require '{DEBIAN}/Psr/Log/autoload.php';
    class Full extends Psr\\Log\\AbstractLogger
    {{
        public function log($level, $message, array $context = []): void
        {{
            throw new Exception('no space left');
        }}
    }}
    set_error_handler(fn (int $type, string $said) => error_reporting() & $type ? throw new Exception($said) : true);
    return (new DelayQueue\\Client\\Worker(logger: {logger}))
        ->on('unlogged', fn () => throw new Exception('no order'), retry: ['1h']);
    """
    queue.push("unlogged", id="unlogged-1")
    worker = f"vendor/bin/delay-queue-worker --max-jobs=1 {project.write('unlogged.php', code)}"
    project.run("sh", "-c", f"php {worker} 2>/dev/full")
    assert got(queue, "unlogged-1").message.startswith("Exception: no order")
    queue.delete("unlogged-1")


async def test_a_worker_ends_after_its_time_or_with_its_memory(
    project: Project, server: QueueServer, queue: Client
) -> None:
    code = """
    $kept = [];
    return (new Worker())->on('limits', function () use (&$kept) { $kept[] = str_repeat('x', 1 << 24); });
    """
    queue.push_many([Job(topic="limits"), Job(topic="limits"), Job(topic="limits")])
    log = await ran(project, server, "--memory=24", code=code)
    assert "the worker ends: it holds 24 MB or more" in log
    assert [topic.ready for topic in queue.topics("limits")] == [1]
    queue.purge("limits")
    assert await ran(project, server, "--max-time=1", "--quiet", code=code) == ""


async def test_a_worker_ends_when_a_connection_of_its_handler_is_gone_and_the_next_one_runs_the_job(
    project: Project, server: QueueServer, queue: Client
) -> None:
    code = """
    return (new Worker())->on('gone', function () {
        file_exists(__DIR__ . '/go') || throw new PDOException('General error: 2006 MySQL server has gone away');
    }, retry: ['1s']);
    """
    queue.push("gone", id="gone-1", retain=600)
    queue.push("gone", id="gone-2", delay=3600)
    log = await ran(project, server, "--max-jobs=9", code=code)
    assert "the worker ends: a connection of its handler is gone" in log
    assert (got(queue, "gone-1").attempt, got(queue, "gone-2").attempt) == (1, 0)
    (project.folder / "go").touch()
    await ran(project, server, code=code)
    assert got(queue, "gone-1").state == "finished"
    queue.delete("gone-2")


async def test_a_worker_ends_when_no_job_has_come_for_the_idle_time(
    project: Project, server: QueueServer, queue: Client
) -> None:
    code = "return (new Worker())->on('idle', fn () => null);"
    queue.push("idle", delay=0.5)
    log = await ran(project, server, "--max-idle=6s", code=code)
    assert log.count("of idle, attempt 1: finished") == 1
    assert "the worker ends: it had no job for 6 s" in log


async def test_the_log_does_not_call_the_last_attempt_released(
    project: Project, server: QueueServer, queue: Client
) -> None:
    code = "return (new Worker())->on('final', fn () => throw new Exception('no'), retry: ['0s']);"
    queue.push("final", id="final-1")
    log = await ran(project, server, "--max-jobs=2", code=code)
    assert "attempt 1: released" in log
    assert "attempt 2: it was the last attempt, the job is buried or has expired" in log
    assert got(queue, "final-1").state == "buried"
    queue.delete("final-1")


async def test_a_worker_outlives_its_server_and_the_store(
    project: Project, processes: Processes
) -> None:
    store = processes.redis("--appendonly", "yes", "--appendfsync", "always")
    server = processes.server(store, language="en")
    code = "return (new Worker())->on('away', function (Job $job) { note('runs'); wait_for('go'); note($job->id); });"
    with Client(server.url) as queue, Running(project, server, "--max-jobs=3", code=code) as worker:
        queue.push("away", id="away-1", ttr=600, retain=600)
        await until(lambda: notes(project) == ["runs"])
        server.kill()
        (project.folder / "go").touch()
        await worker.says("job away-1: cannot tell the server that it is finished")
        server.start()
        await worker.says("away-1 of away, attempt 1: finished")
        server.stop()
        await worker.says("cannot fetch jobs")
        server.start()
        await worker.says("fetching jobs again")

        (project.folder / "go").unlink()
        queue.push("away", id="away-2", ttr=600, retain=600)
        await until(lambda: notes(project)[-1] == "runs")
        store.kill()
        (project.folder / "go").touch()
        await worker.says("job away-2: cannot tell the server")
        store.start()
        await worker.says("away-2 of away, attempt 1: finished")
        queue.push("away", id="away-3", retain=600)
        assert await worker.ended() == 0
        assert notes(project) == ["runs", "away-1", "runs", "away-2", "runs", "away-3"]
        jobs = [got(queue, f"away-{n}") for n in (1, 2, 3)]
        assert [(job.state, job.attempt) for job in jobs] == [("finished", 1)] * 3


async def test_nothing_is_lost_and_nothing_ends_that_did_not_run(
    project: Project, processes: Processes, redis_server: StoreServer
) -> None:
    """Workers that are killed again and again, and a server that is restarted meanwhile."""
    server = processes.server(redis_server, language="en")
    code = """
    return (new Worker())->on('chaos', function (Job $job) {
        usleep(20_000);
        random_int(1, 20) === 1 && exit();
        random_int(1, 20) === 1 && throw new Retry(0, 'by chance');
        note($job->id);
    });
    """
    random, ids = Random(33), [f"chaos-{number}" for number in range(150)]
    with ExitStack() as stack, Client(server.url, retries=5) as queue:
        queue.push_many([Job(topic="chaos", id=each, ttr=2, retain=600) for each in ids])
        running: list[Running] = []
        deadline = time.monotonic() + 3 * COMMAND_S
        rounds = 0
        while any(job is None or job.state != "finished" for job in queue.get_many(ids)):
            assert time.monotonic() < deadline
            rounds += 1
            running = [each for each in running if each.process.poll() is None]
            while len(running) < 3:
                running.append(stack.enter_context(Running(project, server, code=code)))
            await asyncio.sleep(0.2)
            if rounds <= 6:
                random.choice(running).process.kill()
            if rounds == 3:
                server.kill()
                server.start()
        for worker in running:
            worker.process.terminate()
            assert await worker.ended() == 0
    ran = notes(project)
    assert set(ran) == set(ids)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name one PHP file"),
        (["none.php"], "none.php: there is no such file"),
        (["--max-jobs=many", "worker.php"], "--max-jobs=many: must be a number from 1"),
        (["--max-jobs=0", "worker.php"], "max jobs: must be more than 0"),
        (["--max-time=0", "worker.php"], "max time: must be more than 0"),
        (["--max-idle=0s", "worker.php"], "max idle: must be more than 0"),
        (["--memory=0", "worker.php"], "memory: must be more than 0"),
        (["--jobs=1", "worker.php"], "--jobs=1: no such option"),
        (["--max-jobs", "worker.php"], "--max-jobs: no such option, or without its =VALUE"),
        (["--max-time=soon", "worker.php"], '"soon": must be a text like'),
        (["idle.php"], "this worker has no handlers: call on()"),
        (["text.php"], "retry \"10s\": must be a list such as ['10s', '1m']"),
        (["nothing.php"], "nothing.php: must return a DelayQueue\\Client\\Worker"),
        (["none-of-it.php"], "name a handler"),
        (["comma.php"], "topic: no comma, it separates the topics of a pop"),
        (["blank.php"], "topic: must not be empty"),
        (["one-is-none.php"], "handler 1: must be callable, not string"),
    ],
)
def test_a_wrong_use_is_told(project: Project, arguments: list[str], said: str) -> None:
    project.write("worker.php", WORKER + "return (new Worker())->on('t', fn () => null);")
    project.write("nothing.php", "<?php ")
    project.write("idle.php", WORKER + "return new Worker();")
    project.write("none-of-it.php", WORKER + "return (new Worker())->on('t', []);")
    project.write("comma.php", WORKER + "return (new Worker())->on('a,b', fn () => null);")
    project.write("blank.php", WORKER + "return (new Worker())->on(' ', fn () => null);")
    handlers = "['strlen', 'no_such_function']"
    project.write("one-is-none.php", WORKER + f"return (new Worker())->on('t', {handlers});")
    project.write("text.php", WORKER + "return (new Worker())->on('t', fn () => null, '10s');")
    ended = project.ended("php", "vendor/bin/delay-queue-worker", *arguments)
    assert (ended.returncode, ended.stdout[: len("delay-queue-worker: ")]) == (
        2,
        "delay-queue-worker: ",
    )
    assert said in ended.stdout


def test_help_names_each_option(project: Project) -> None:
    said = project.run("php", "vendor/bin/delay-queue-worker", "--help")
    for option in ("--max-jobs", "--max-time", "--max-idle", "--memory", "--quiet"):
        assert option in said
