"""The connection for Laravel, in an application of Debian's Laravel that has discovered it."""

import json
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from delayqueue import Client
from tests.docs.markdown import shown
from tests.partner import Answer, Partner
from tests.processes import REPOSITORY, QueueServer, StoreServer

from .project import Project, debian_version, needs_debian

HERE: Final = REPOSITORY / "tests/php/laravel"
TABLES: Final = """\
CREATE TABLE jobs (id INTEGER PRIMARY KEY AUTOINCREMENT, queue, payload, attempts, reserved_at, available_at,
    created_at);
CREATE TABLE failed_jobs (id INTEGER PRIMARY KEY, uuid, connection, queue, payload, exception, failed_at);
CREATE TABLE job_batches (id, name, total_jobs, pending_jobs, failed_jobs, failed_job_ids, options, created_at,
    cancelled_at, finished_at);
"""


class Application:
    """An application of Laravel."""

    def __init__(self, project: Project, server: QueueServer) -> None:
        self._project = project
        self._server = server
        self.database = project.folder / "database/shop.sqlite"

    def artisan(self, *words: str, **environment: str) -> str:
        """What `php artisan` prints."""
        return self._project.run(
            "php", "artisan", *words, **({"DELAYQUEUE_URL": self._server.url} | environment)
        )

    def php(self, code: str) -> str:
        """What lines of PHP print in the application."""
        head = "<?php use App\\Jobs\\CloseOrder; use Illuminate\\Support\\Facades\\Queue;\n"
        return self.artisan("run", self._project.write("lines.php", head + code))

    def work(self, *options: str, **environment: str) -> list[str]:
        """What handlers print under `queue:work`."""
        words = ("queue:work", "delay-queue", "--quiet", *options)
        return self.artisan(*words, **environment).splitlines()

    def rows(self, question: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.database)) as database:
            return database.execute(question).fetchall()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, server: QueueServer) -> Application:
    needs_debian("Illuminate/Foundation/Application.php")
    folder = tmp_path_factory.mktemp("laravel") / "shop"
    shutil.copytree(HERE, folder)
    (folder / "app/Jobs").mkdir(parents=True)
    shutil.copy(REPOSITORY / "examples/laravel/CloseOrder.php", folder / "app/Jobs")
    for name in ("bootstrap/cache", "database", "storage/framework/cache"):
        (folder / name).mkdir(parents=True)
    with closing(sqlite3.connect(folder / "database/shop.sqlite")) as database:
        database.executescript(TABLES)
    laravel = (debian_version("php-illuminate-queue"), ["Illuminate/autoload.php"])
    names = ("illuminate/contracts", "illuminate/queue", "illuminate/support")
    project = Project(
        folder,
        "delay-queue/laravel",
        libraries=dict.fromkeys(names, laravel),
        autoload={"App\\": "app/"},
    )
    return Application(project, server)


@pytest.fixture
def laravel(made: Application, queue: Client) -> Iterator[Application]:
    """The application, and no jobs."""
    yield made
    for topic in queue.topics():
        queue.purge(topic.topic)


def test_the_connection_is_there_without_a_line_of_configuration(laravel: Application) -> None:
    said = laravel.artisan("run", "basics.php")
    assert said.splitlines() == [
        "delayed 2 of 3, ready 1, reserved 0",
        "its oldest is young",
        "cancelled 1, 1",
        "attempt 1, its id",
        "attempt 2",
        "left 0",
        "bulk: ready 1, delayed 1, queued 5",
        "refused, ready 2",
        "cleared 3",
        "id mine",
        "delayed, priority 7, ttr 90",
    ]


def test_the_worker_closes_orders_and_failures_come_again_or_are_kept(
    laravel: Application, queue: Client
) -> None:
    began_s = time.time()
    laravel.php(
        """
        CloseOrder::dispatch('1001')->onConnection('delay-queue')->delay(1);
        CloseOrder::dispatch('nobody')->onConnection('delay-queue');
        """
    )
    assert laravel.work("--max-jobs=2") == ["closed order 1001"]
    [failed] = queue.list_jobs("default").jobs
    assert (failed.state, failed.attempt, failed.tags) == ("delayed", 1, ("order:nobody",))
    assert began_s + 9 < failed.due < time.time() + 11  # $backoff of the job
    for _ in range(3):  # $tries
        queue.kick(failed.id)
        laravel.work("--once")
    assert queue.get(failed.id) is None
    [(connection, exception)] = laravel.rows("SELECT connection, exception FROM failed_jobs")
    assert connection == "delay-queue"
    assert str(exception).startswith("RuntimeException: no order nobody")
    laravel.artisan("queue:retry", "all")
    assert laravel.rows("SELECT * FROM failed_jobs") == []
    assert queue.cancel("order:nobody") == 1


def test_the_command_of_the_page_works_on_jobs_and_hardly_sleeps(laravel: Application) -> None:
    command = shown("docs/howto/laravel.md", "sh", "php artisan queue:work")
    assert "--sleep=0.1" in command.split()
    laravel.php("CloseOrder::dispatch('1001')->onConnection('delay-queue')->delay(1);")
    said = laravel.artisan(*command.split()[2:], "--quiet", "--max-jobs=1")
    assert said == "closed order 1001\n"


def test_the_lock_of_a_unique_job_outlives_its_cancellation_as_the_page_says(
    laravel: Application,
) -> None:
    said = laravel.php(
        """
        class Once extends CloseOrder implements Illuminate\\Contracts\\Queue\\ShouldBeUnique
        {
            public $uniqueFor = 3600;

            public function uniqueId(): string
            {
                return $this->order;
            }
        }

        $queue = Queue::connection('delay-queue');
        $dispatch = function () use ($queue): void {
            Once::dispatch('1001')->onConnection('delay-queue')->delay(1800);
            echo $queue->size();
        };
        foreach ([fn () => $dispatch(), fn () => $queue->cancel('order:1001'), fn () => $dispatch()] as $step) {
            $step();
        }
        Illuminate\\Support\\Carbon::setTestNow(now()->addSeconds(3601)); // the cache's clock
        $dispatch();
        """
    )
    assert said == "101"


NOTHING: Final = Answer(200, '{"code":0,"message":"ok","data":null}')


def asked(partner: Partner) -> list[tuple[str, float]]:
    """The topics and waits of the polls that it got, each once."""
    polls = [json.loads(each) for each in partner.received]
    return list(dict.fromkeys((each["topic"], each["timeout"]) for each in polls))


def test_a_worker_of_several_queues_waits_only_when_all_are_empty(laravel: Application) -> None:
    push = "foreach ([1, 2, 3] as $n) Queue::connection('delay-queue')->pushOn('{}', new CloseOrder(\"{}$n\"));"
    laravel.php(push.format("high", 1) + push.format("default", 2))
    options = ("--queue=high,default", "--max-jobs=5")
    # it would wait for longer than a command may take
    closed = laravel.work(*options, WAIT="170") + laravel.work("--once", options[0], WAIT="170")
    assert closed == [f"closed order {order}" for order in (11, 12, 13, 21, 22, 23)]
    with Partner(NOTHING) as partner:
        laravel.work("--stop-when-empty", options[0], DELAYQUEUE_URL=partner.url, WAIT="1")
        assert asked(partner) == [("high", 0), ("default", 1)]
    with Partner(NOTHING) as partner:
        laravel.work("--stop-when-empty", DELAYQUEUE_URL=partner.url, WAIT="1")
        assert asked(partner) == [("default", 1)]


def test_a_time_that_has_passed_is_now_and_a_text_that_is_no_number_of_seconds_is_refused(
    laravel: Application,
) -> None:
    """What is one: clients/php/tests/DurationTest.php."""
    said = laravel.php(
        """
        $queue = Queue::connection('delay-queue');
        $queue->later(-5, new CloseOrder('1001'));
        $queue->later(now()->subMinute(), new CloseOrder('1002'));
        $queue->bulk([(new CloseOrder('1003'))->delay(-5)]);
        $queue->pop()->release(-1);
        $queue->later('60', new CloseOrder('1004'));
        $reserved = $queue->pop();
        foreach ([
            fn () => $queue->later('2026-12-01 10:00', new CloseOrder('1003')),
            fn () => $queue->bulk([(new CloseOrder('1004'))->delay('30 minutes')]),
            fn () => $reserved->release('tomorrow'),
        ] as $refused) {
            try {
                $refused();
            } catch (InvalidArgumentException $error) {
                echo $error->getMessage(), "\n";
            }
        }
        echo "{$queue->pendingSize()} of {$queue->size()}, released: ", json_encode($reserved->isReleased());
        """
    )
    *refused, sizes = said.splitlines()
    assert [line.partition(": must be a number of seconds, or")[0] for line in refused] == [
        'delay "2026-12-01 10:00"',
        'delay "30 minutes"',
        'delay "tomorrow"',
    ]
    assert sizes == "2 of 4, released: false"


def test_tags_that_horizon_takes_are_taken_as_far_as_they_go(
    laravel: Application, queue: Client
) -> None:
    said = laravel.php(
        """
        class Tagged extends CloseOrder
        {
            public static $tags;

            public function tags(): array
            {
                return self::$tags;
            }
        }

        Tagged::$tags = [7, null, str_repeat('x', 300), 'order:1001'];
        Queue::connection('delay-queue')->push(new Tagged('1001'));
        Queue::connection('delay-queue')->push(new Tagged('1001'));
        echo substr_count(file_get_contents(storage_path('shop.log')), 'some tags of Tagged were left out');
        """
    )
    assert said == "1"
    assert [job.tags for job in queue.list_jobs("default").jobs] == [("7", "order:1001")] * 2


def test_the_group_of_a_job_is_that_of_ongroup_or_messagegroup(
    laravel: Application, queue: Client
) -> None:
    """Laravel 8 has no onGroup() yet: it is written here as in Laravel 12.27 and 13."""
    said = laravel.php(
        """
        class Grouped extends CloseOrder
        {
            public $messageGroup;

            public function onGroup($group)
            {
                $this->messageGroup = $group;

                return $this;
            }
        }

        class OfCustomer extends Grouped
        {
            public function messageGroup()
            {
                return 7;
            }
        }

        $queue = Queue::connection('delay-queue');
        $queue->push((new Grouped('1001'))->onGroup('customer-7'));
        $queue->bulk([(new OfCustomer('1002'))->delay(1800), (new OfCustomer('1003'))->onGroup('customer-8')]);
        $chain = [new CloseOrder('1004'), (new Grouped('1005'))->onGroup('customer-9')];
        Illuminate\\Support\\Facades\\Bus::chain($chain)->onConnection('delay-queue')->onQueue('chain')->dispatch();
        $queue->pop('chain')->fire();
        echo $queue->pop('chain')->reserved()->group, "\\n";
        try {
            $queue->push((new Grouped('1006'))->onGroup(['customer-7']));
        } catch (InvalidArgumentException $error) {
            echo $error->getMessage();
        }
        """
    )
    assert said.splitlines() == [
        *("closed order 1004", "customer-9"),
        'the group of Grouped is array: must be a text such as "customer-7", or null',
    ]
    groups = {job.tags[0]: job.group for job in queue.list_jobs("default").jobs}
    assert groups == {
        "order:1001": "customer-7",
        "order:1002": "7",
        "order:1003": "customer-8",
    }


def test_a_group_that_is_empty_is_none(laravel: Application, queue: Client) -> None:
    """As in Laravel's connection for SQS: a customer's job has a group, a guest's has none."""
    laravel.php(
        """
        class OfGuest extends CloseOrder
        {
            public $messageGroup = '';
        }

        Queue::connection('delay-queue')->push(new OfGuest('1001'));
        """
    )
    assert [job.group for job in queue.list_jobs("default").jobs] == [""]


def test_what_laravel_wraps_in_jobs_of_its_own_has_tags_a_group_and_a_ttr(
    laravel: Application,
) -> None:
    said = laravel.artisan("run", "wrapped.php", QUEUE_CONNECTION="delay-queue")
    assert said.splitlines() == [
        "listener: ttr 600, group 'customer-7', cancelled 1",
        "notification: ttr 600, group 'customer-7', cancelled 1",
        "mailable: ttr 600, group 'customer-7', cancelled 1",
        "broadcast event: ttr 600, group '', cancelled 1",
    ]


def test_a_job_with_a_longer_time_limit_has_a_longer_ttr(laravel: Application) -> None:
    """It would be delivered again while it runs. How much longer: clients/php/tests/TtrTest.php."""
    said = laravel.php(
        """
        class Slow extends CloseOrder
        {
            public $timeout = 500;
        }

        class Slower extends Slow
        {
            public $ttr = 700;
        }

        $queue = Queue::connection('delay-queue');
        foreach ([new CloseOrder('1001'), new Slow('1002'), new Slower('1003')] as $job) {
            echo $queue->client()->get($queue->push($job))->ttr, " ";
        }
        """
    )
    assert said.split() == ["90", "530", "700"]


def test_a_delay_keeps_its_fraction_of_a_second(laravel: Application) -> None:
    """Which seconds a delay is: clients/php/tests/DurationTest.php."""
    said = laravel.php(
        """
        $now = Illuminate\\Support\\Carbon::parse('2026-12-01 10:00:00.2');
        Illuminate\\Support\\Carbon::setTestNow($now);
        $queue = Queue::connection('delay-queue');
        $show = function (string $id) use ($queue): void {
            $job = $queue->client()->get($id);
            echo round($job->due - $job->created, 3), "\n";
        };
        foreach ([$now->copy()->addMilliseconds(1900), 0.9, '1.5', new DateInterval('PT60S')] as $delay) {
            $show($queue->later($delay, new CloseOrder('1001')));
        }
        $queue->push(new CloseOrder('1002'), '', 'released');
        $job = $queue->pop('released');
        $before = microtime(true);
        $job->release($now->copy()->addMilliseconds(60700));
        echo json_encode($queue->client()->get($job->getJobId())->due > $before + 60.6);
        """
    )
    assert said.splitlines() == ["1.9", "0.9", "1.5", "60", "true"]


def test_delays_that_are_attributes_queues_that_are_cases_and_forwards_count(
    laravel: Application, queue: Client
) -> None:
    """What they call is in Laravel 13, and written here as there."""
    laravel.php(
        """
        class OfLaravel13 extends DelayQueue\\Laravel\\DelayQueue
        {
            protected function getAttributeValue($of, string $class, ?string $property = null, $default = null)
            {
                [$attribute] = (new ReflectionClass($of))->getAttributes($class) + [null];

                return $attribute?->getArguments()[0] ?? $of->$property ?? $default;
            }

            protected function resolveQueue($queue)
            {
                return $queue === 'old' ? 'new' : $queue;
            }
        }

        #[Illuminate\\Queue\\Attributes\\Delay(1800)]
        class Later extends CloseOrder
        {
        }

        enum Name: string
        {
            case High = 'high';
        }

        $queue = new OfLaravel13(Queue::connection('delay-queue')->client(), 'default', 90, 1, false);
        $queue->setContainer(app());
        $queue->bulk([new Later('1001')], '', Name::High);
        $queue->push(new CloseOrder('1002'), '', 'old');
        """
    )
    counts = {topic.topic: (topic.delayed, topic.ready) for topic in queue.topics()}
    assert (counts["high"], counts["new"], "old" in counts) == ((1, 0), (0, 1), False)


def test_a_bulk_may_be_larger_than_a_request(laravel: Application, queue: Client) -> None:
    laravel.php(
        """
        class Long extends CloseOrder
        {
            public $text;
        }

        $job = new Long('1001');
        $job->text = str_repeat('x', 100_000); // the server takes 8 MB in a request
        Queue::connection('delay-queue')->bulk(array_fill(0, 100, $job));
        Queue::connection('delay-queue')->bulk(array_fill(0, 1001, new CloseOrder('1002')), '', 'many');
        """
    )
    assert {topic.topic: topic.ready for topic in queue.topics() if topic.ready} == {
        "default": 100,
        "many": 1001,
    }


def test_a_listener_may_push_while_jobs_are_pushed_together(
    laravel: Application, queue: Client
) -> None:
    said = laravel.php(
        """
        $queue = Queue::connection('delay-queue');
        app('events')->listen(Illuminate\\Queue\\Events\\JobQueued::class, function () use ($queue): void {
            static $told = 0;
            if ($told++ === 0) {
                $queue->bulk([new CloseOrder('9001')], '', 'audit');
                echo $queue->pendingSize('audit');
                $queue->push(new CloseOrder('9002'), '', 'audit');
                echo $queue->pendingSize('audit');
            }
        });
        $queue->bulk([new CloseOrder('1001'), new CloseOrder('1002'), new CloseOrder('1003')]);
        """
    )
    assert said == "12"
    assert {topic.topic: topic.ready for topic in queue.topics() if topic.ready} == {
        "default": 3,
        "audit": 2,
    }


@pytest.mark.parametrize("tries", [1, 2])
def test_a_job_that_is_cancelled_while_it_runs_has_not_failed(
    laravel: Application, queue: Client, tries: int
) -> None:
    """Nobody may retry it, and the log has the error of its handler."""
    said = laravel.php(
        f"""
        class Paid extends CloseOrder
        {{
            public $tries = {tries};

            public function handle(): void
            {{
                echo 'cancelled ', Queue::connection('delay-queue')->cancel('order:1001'), "\n";
                throw new RuntimeException('the card of try {tries} is refused');
            }}

            public function failed(): void
            {{
                echo "failed\n";
            }}
        }}

        Queue::connection('delay-queue')->push(new Paid('1001'));
        $words = ['connection' => 'delay-queue', '--once' => true, '--quiet' => true];
        Illuminate\\Support\\Facades\\Artisan::call('queue:work', $words);
        $log = file_get_contents(storage_path('shop.log'));
        echo json_encode(str_contains($log, 'the card of try {tries} is refused'));
        """
    )
    assert said == "cancelled 1\ntrue"
    assert queue.list_jobs("default").jobs == []
    assert laravel.rows("SELECT * FROM failed_jobs") == []


def test_a_job_that_cannot_be_failed_leaves_that_to_its_next_attempt(
    laravel: Application, queue: Client
) -> None:
    """Laravel's time limit ends the worker after fail(): what that throws would go on in the handler."""
    with Partner(Answer(403, '{"code":8,"message":"no","data":null}')) as partner:
        said = laravel.php(
            f"""
            $queue = Queue::connection('delay-queue');
            $queue->push(new CloseOrder('1001'));
            $unable = new DelayQueue\\Client\\Client('{partner.url}');
            $job = new DelayQueue\\Laravel\\DelayQueueJob(app(), $unable, $queue->pop()->reserved(), 'delay-queue');
            $failed = fn () => print("recorded as failed\n");
            app('events')->listen(Illuminate\\Queue\\Events\\JobFailed::class, $failed);
            $job->fail(new RuntimeException('it took too long'));
            """
        )
    assert said == ""
    assert [path for path, _ in partner.heads] == ["/touch"]
    assert [job.state for job in queue.list_jobs("default").jobs] == ["reserved"]


def test_monitor_and_clear_work(laravel: Application, queue: Client) -> None:
    queue.push("default", "{}")
    said = laravel.artisan("queue:monitor", "delay-queue:default", "--max=1")
    assert re.search(r"default\W+1\W+ALERT", said), said
    assert re.search(
        r"Cleared \W?1\W? job", laravel.artisan("queue:clear", "delay-queue", "--force")
    )


def test_what_the_page_shows_beyond_the_interface_works(
    laravel: Application, queue: Client
) -> None:
    laravel.php(shown("docs/howto/laravel.md", "php", "$queue = "))
    assert queue.list_jobs("default").jobs == []  # the order is paid
    job = queue.get("report-7")
    assert job is not None
    assert (job.topic, job.state, job.priority) == ("reports", "delayed", 7)


def test_chains_batches_and_failed_jobs_do_what_the_page_says(laravel: Application) -> None:
    assert laravel.artisan("run", "bus.php").splitlines() == [
        "chain:",
        "closed order 2001",
        "0 ready, 1 delayed",  # from now on, not from the dispatch
        "cancelled 1, 0 ready, 0 delayed",  # and the rest of the chain
        "closed order 2001",
        "killed",
        *["closed order 2002", "closed order 2001", "closed order 2002"],
        "0 ready, 0 delayed",
        "batch:",
        "1 ready, 1 delayed",
        "closed order 3001",
        *["1 pending", "cancelled 1", "1 pending"],
        *["closed order 3001", "killed", "closed order 3001", "then", "0 pending"],
        "refused, batches 2, 1 ready, 0 delayed",
        "closed order 3001",
        "failed:",
        "0 ready, 0 delayed",
        "1 ready, 0 delayed, rows 0",
        "attempt 1, ttr 600, group customer-3, another id",
        "cancelled 1",
    ]


def test_jobs_are_pushed_after_the_commit_where_the_settings_say_so(laravel: Application) -> None:
    said = "rolled back: 0\nbefore the commit: 0\nafter it: 3\n"
    assert laravel.artisan("run", "transact.php", AFTER_COMMIT="1") == said


@pytest.mark.parametrize(
    ("order", "said", "end"), [("1001", ["closed order 1001"], "finish"), ("nobody", [], "release")]
)
def test_an_end_that_had_no_answer_is_repeated(
    laravel: Application, queue: Client, order: str, said: list[str], end: str
) -> None:
    laravel.php(f"Queue::connection('delay-queue')->push(new CloseOrder('{order}'));")
    held = queue.pop("default", wait=5)
    assert held is not None
    job = {"topic": "default", "id": "a", "body": held.body, "attempt": 1, "receipt": "r", "due": 0}
    popped = Answer(200, json.dumps({"code": 0, "message": "", "data": job}))
    away = Answer(503, '{"code":6,"message":"","data":null}')
    done = Answer(200, '{"code":0,"message":"","data":{"due":5.0}}')
    with Partner(popped, away, away, away, done) as partner:
        assert laravel.work("--once", DELAYQUEUE_URL=partner.url) == said
    assert [path for path, _ in partner.heads] == ["/pop", *[f"/{end}"] * 4]


def test_the_worker_goes_on_with_what_the_database_queue_held(
    laravel: Application, server: QueueServer, tmp_path: Path
) -> None:
    laravel.php(
        """
        Queue::connection('database')->push(new CloseOrder('1001'));
        Queue::connection('database')->later(1800, new CloseOrder('1002'));
        """
    )
    for name in ("recipes/move_laravel_jobs.php", "php/delay_queue.php"):
        shutil.copy(REPOSITORY / "examples" / name, tmp_path)
    moved = subprocess.run(
        ["php", "move_laravel_jobs.php", "shop", f"sqlite:{laravel.database}"],
        cwd=tmp_path,
        env={"DELAYQUEUE_URL": server.url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert moved.stdout == "moved 2 jobs, 0 refused\n", moved
    assert laravel.work("--once") == ["closed order 1001"]
    assert laravel.rows("SELECT * FROM jobs") == []


def test_the_worker_goes_on_with_what_the_redis_queue_held(
    laravel: Application, queue: Client, redis_server: StoreServer
) -> None:
    said = laravel.artisan(
        "run",
        "redis.php",
        REDIS=redis_server.address,
        DATABASE=str(redis_server.new_database()),
        MOVE=str(REPOSITORY / "examples/recipes/move_laravel_redis.php"),
    )
    assert said.splitlines() == ["moved 3 jobs", "left 0", "moved 1 jobs"]
    [counts] = queue.topics("default")
    assert (counts.ready, counts.delayed) == (1, 2)  # one is delayed, one was reserved
    assert laravel.work("--once") == ["closed order 1001"]
