"""Packages for frameworks that are not in Debian: their classes run with lines that stand in for the framework."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from delayqueue import Client
from tests.docs.markdown import at
from tests.partner import Answer, Partner
from tests.processes import REPOSITORY, QueueServer

from .project import Project, debian_version, needs_debian

STAND_INS: Final = REPOSITORY / "tests/php/stand_ins"


Framework = Callable[..., Project]


@pytest.fixture(scope="module")
def framework(tmp_path_factory: pytest.TempPathFactory, server: QueueServer) -> Framework:
    """Makes a project with one of our packages, and a library of this version that is in these files."""

    def framework(package: str, library: str, version: str, *files: str, **more: Any) -> Project:
        folder = tmp_path_factory.mktemp(package)
        libraries = {library: (version, files)}
        project = Project(folder, f"delay-queue/{package}", libraries=libraries, **more)
        project.variables["DELAYQUEUE_URL"] = server.url
        return project

    return framework


@pytest.fixture(scope="module")
def think(framework: Framework) -> Project:
    file = str(STAND_INS / "think_queue.php")
    own = {"app\\job\\": "app/job/"}
    project = framework("think-queue", "topthink/think-queue", "3.0.9", file, autoload=own)
    for name, place in (("CloseOrder.php", "app/job/CloseOrder.php"), ("worker.php",) * 2):
        project.write(place, (REPOSITORY / "examples/thinkphp" / name).read_text("utf-8"))
    return project


def test_think_queue_pushes_pops_releases_and_deletes(think: Project, queue: Client) -> None:
    said = think.php(
        """
        use app\\job\\CloseOrder;

        $connection = DelayQueue\\ThinkQueue\\DelayQueue::__make(['queue' => 'think', 'wait' => 1]);
        $connection->setApp(new think\\App());
        $id = $connection->push(CloseOrder::class, ['order' => '3006']);
        $connection->later(1800, 'None', [], 'think-later');
        $job = $connection->pop();
        echo $job->getJobId() === $id ? 'its id' : 'another id', " {$job->attempts()} {$job->getRawBody()}\\n";
        $job->release();
        $job = $connection->pop();
        echo "attempt {$job->attempts()}, {$connection->size()} and {$connection->size('think-later')}\\n";
        (new CloseOrder())->fire($job, ['order' => '3006']);
        echo "{$connection->size()} left\\n";
        var_dump($connection->pop());
        echo $connection->pushRaw('{}', 'think-later', ['id' => 'mine', 'tags' => ['t'], 'delay' => '1h']), "\\n";
        $connection->later(1800, CloseOrder::class . '@fire', ['order' => '3007'], 'think-later');
        echo $connection->client()->cancel('t'), ' ', $connection->client()->cancel('order:3007'), "\\n";
        """
    )
    assert said.splitlines() == [
        r'its id 1 {"job":"app\\job\\CloseOrder","data":{"order":"3006"},"delay-queue":{"tags":["order:3006"]}}',
        *("attempt 2, 1 and 1", "closed order 3006", "0 left", "NULL", "mine", "1 1"),
    ]
    [later] = queue.list_jobs("think-later").jobs
    assert (later.state, later.ttr) == ("delayed", 90)


def test_think_queue_takes_the_tags_and_the_group_of_the_class_that_it_runs(
    think: Project, queue: Client
) -> None:
    think.write(
        "app/job/ShipOrder.php",
        """<?php
        namespace app\\job;

        class ShipOrder extends CloseOrder
        {
            public static function group(array $data): string
            {
                return 'customer-7';
            }
        }
        """,
    )
    said = think.php(
        """
        class_alias(app\\job\\ShipOrder::class, 'shop\\job\\SendMail');
        $queueOf = function (string $namespace) {
            $connection = DelayQueue\\ThinkQueue\\DelayQueue::__make(['queue' => 'short']);

            return $connection->setApp((new think\\App())->setNamespace($namespace));
        };
        $order = ['order' => '1001'];
        foreach ([
            ['app', 'app', 'app\\job\\ShipOrder'],
            ['app', 'app', 'ShipOrder'],
            ['app', 'app', 'ship_order'],
            ['app', 'app', 'ship-order@fire'],
            ['app\\admin', 'app', 'ShipOrder'], // a request of one of several applications
            ['shop', 'shop', 'SendMail'],
        ] as [$pusher, $worker, $name]) {
            $queueOf($pusher)->push($name, $order);
            $job = $queueOf($worker)->pop();
            $job->fire();
            $queueOf($pusher)->later(1800, $name, $order);
            $queueOf($worker)->pushRaw($job->getRawBody(), null, ['delay' => 1800]); // queue:retry has no more
        }
        """
    )
    assert said == "closed order 1001\n" * 6
    jobs = [(job.tags, job.group) for job in queue.list_jobs("short").jobs]
    assert jobs == [(("order:1001",), "customer-7")] * 12
    queue.purge("short")


def test_think_queue_keeps_fractions_of_a_second_and_time_limits_of_jobs(think: Project) -> None:
    """Which they are: clients/php/tests/DurationTest.php and TtrTest.php."""
    said = think.php(
        """
        class Slow
        {
            public $timeout = 500;
        }

        $connection = DelayQueue\\ThinkQueue\\DelayQueue::__make(['queue' => 'slow']);
        $connection->setApp(new think\\App());
        $job = $connection->client()->get($connection->later('0.9', new Slow()));
        echo round($job->due - $job->created, 3), " $job->ttr\n";
        $connection->client()->purge('slow');
        $connection->push(new Slow());
        $held = $connection->pop();
        $before = microtime(true);
        $held->release(new DateTimeImmutable('+60 seconds'));
        echo json_encode($connection->client()->get($held->getJobId())->due > $before + 59.9);
        $connection->client()->purge('slow');
        """
    )
    assert said.splitlines() == ["0.9 530", "true"]


def test_a_job_of_think_queue_that_is_cancelled_while_it_runs_has_not_failed(
    think: Project,
) -> None:
    said = think.php(
        """
        $connection = DelayQueue\\ThinkQueue\\DelayQueue::__make(['queue' => 'cancelled']);
        $connection->setApp(new think\\App());
        foreach ([true, false] as $isCancelled) {
            $id = $connection->push('None');
            $job = $connection->pop();
            $isCancelled && $connection->client()->delete($id);
            $job->markAsFailed(); // as think-queue's worker does it, after the last attempt
            if (!$job->isDeleted()) {
                $job->delete();
                echo "recorded as failed\n";
            }
        }
        $id = $connection->push('None');
        $job = $connection->pop();
        $connection->client()->delete($id);
        $job->release(10); // after another attempt
        """
    )
    assert said == "recorded as failed\n"


def test_the_time_limit_of_a_job_of_think_queue_is_over_when_the_worker_asks_for_the_next_one(
    think: Project,
) -> None:
    """think-queue sets an alarm for each job, and never ends it: it would kill the worker in a wait."""
    said = think.php(
        """
        $connection = DelayQueue\\ThinkQueue\\DelayQueue::__make(['wait' => 1]);
        pcntl_alarm(60);
        $connection->setApp(new think\\App())->pop('think-idle');
        echo pcntl_alarm(0);
        """
    )
    assert said == "0"


def test_think_queue_waits_only_when_all_queues_of_a_worker_are_empty(think: Project) -> None:
    """In each round: clients/php/tests/TurnsTest.php."""
    code = """
        $connection = DelayQueue\\ThinkQueue\\DelayQueue::__make(['wait' => 1]);
        $connection->setApp(new think\\App());
        foreach ([1, 2] as $_) { // as think-queue's worker does it
            foreach (['think-high', 'think-low'] as $queue) {
                $connection->pop($queue);
            }
        }
        """
    with Partner(Answer(200, '{"code":0,"message":"ok","data":null}')) as partner:
        think.php(code, DELAYQUEUE_URL=partner.url)
    polls = [json.loads(each) for each in partner.received]
    high, low = ("think-high", 0), ("think-low", 0)
    asked = [(poll["topic"], poll["timeout"]) for poll in polls[:4]]
    assert asked == [high, low, high, ("think-low", 1)]


PASSED: Final = {
    "think": """
        $connection = DelayQueue\\ThinkQueue\\DelayQueue::__make(['queue' => 'passed']);
        $connection->setApp(new think\\App());
        $connection->later(-5, 'None');
        $connection->pop()->release(-1);
        """,
    "yii": """
        $queue = new DelayQueue\\Yii2\\Queue(['topic' => 'passed']);
        $queue->delay(-5)->push(new app\\jobs\\CloseOrder(['order' => '1']));
        """,
    "hyperf": """
        class Job1 extends Hyperf\\AsyncQueue\\Job
        {
        }

        $container = new class () implements Psr\\Container\\ContainerInterface {
        };
        (new DelayQueue\\Hyperf\\DelayQueueDriver($container, ['channel' => 'passed']))->push(new Job1(), -5);
        """,
    "cpm": """
        require 'OrderHandler.php';
        $job = new DelayQueue\\Job();
        $job->setTopic('passed');
        $job->setId('passed-1');
        $job->setDelay(-5);
        $job->setTtr(60);
        $job->setBody([]);
        (new DelayQueue\\DelayQueue(getenv('DELAYQUEUE_URL')))->push(Shop\\OrderHandler::class, $job);
        """,
}


@pytest.mark.parametrize("name", PASSED)
def test_a_time_that_has_passed_is_now(
    name: str, queue: Client, request: pytest.FixtureRequest
) -> None:
    project: Project = request.getfixturevalue(name)
    project.php(PASSED[name])
    assert [topic.ready for topic in queue.topics("passed")] == [1]
    queue.purge("passed")


# what a user would write for a list or for one, and what says so
WRONG_SETTINGS: Final = [
    (
        "think",
        "DelayQueue\\ThinkQueue\\DelayQueue::__make(['queue' => ['high', 'low']]);",
        'queue: must be the name of one topic, such as "orders", not array',
    ),
    ("hyperf", "$make(['retry_seconds' => '5,10']);", 'retry_seconds: "5,10": must be a text like'),
    ("hyperf", "$make(['channel' => ['a']]);", "channel: must be the name of one topic"),
    (
        "yii",
        "(new DelayQueue\\Yii2\\Queue(['retryDelay' => 'soon']))->run(false);",
        'retryDelay: "soon": must be a text like',
    ),
]


@pytest.mark.parametrize(("name", "code", "said"), WRONG_SETTINGS)
def test_a_setting_of_the_wrong_shape_is_refused_by_its_name(
    name: str, code: str, said: str, request: pytest.FixtureRequest
) -> None:
    project: Project = request.getfixturevalue(name)
    told = project.php(
        f"""
        $make = fn (array $config)
            => new DelayQueue\\Hyperf\\DelayQueueDriver(new Hyperf\\Contract\\Container(), $config);
        try {{
            {code}
        }} catch (InvalidArgumentException $error) {{
            echo $error->getMessage();
        }}
        """
    )
    assert told.startswith(said)


MARKED: Final = {
    "think": """
        class Marked
        {
            public static function tags($data): array
            {
                return $data[0];
            }

            public static function group($data): mixed
            {
                return $data[1];
            }
        }

        $connection = DelayQueue\\ThinkQueue\\DelayQueue::__make(['queue' => 'marked']);
        $connection->setApp(new think\\App());
        class_alias(Marked::class, 'app\\job\\Marked');
        $push = fn (array $tags, mixed $group) => $connection->push('Marked', [$tags, $group]);
        """,
    "yii": """
        class Marked extends app\\jobs\\CloseOrder
        {
            public $marks;

            public function tags(): array
            {
                return $this->marks[0];
            }

            public function group(): mixed
            {
                return $this->marks[1];
            }
        }

        $queue = new DelayQueue\\Yii2\\Queue(['topic' => 'marked']);
        $push = fn (...$marks) => $queue->push(new Marked(['order' => '1', 'marks' => $marks]));
        """,
    "hyperf": """
        class Marked extends Hyperf\\AsyncQueue\\Job
        {
            public function __construct(private array $tags, private mixed $customer)
            {
            }

            public function tags(): array
            {
                return $this->tags;
            }

            public function group(): mixed
            {
                return $this->customer;
            }
        }

        $container = new Hyperf\\Contract\\Container();
        $driver = new DelayQueue\\Hyperf\\DelayQueueDriver($container, ['channel' => 'marked']);
        $push = fn (array $tags, mixed $group) => $driver->push(new Marked($tags, $group));
        """,
}


@pytest.mark.parametrize("name", MARKED)
def test_a_job_says_its_tags_and_its_group(
    name: str, queue: Client, request: pytest.FixtureRequest
) -> None:
    """Which values are tags: clients/php/tests/TagsTest.php."""
    project: Project = request.getfixturevalue(name)
    said = project.php(
        MARKED[name]
        + """
        $push(['t', null, 7], 'customer-7');
        $push([null, 'u'], 8);
        $push([], null);
        try {
            $push([], [9]);
        } catch (InvalidArgumentException $error) {
            echo $error->getMessage();
        }
        """
    )
    assert said.replace("app\\job\\", "").splitlines() == [
        (
            "warning: delay-queue: some tags of Marked were left out, and cancel() will not find the job by them: "
            "null is no tag"
        ),
        'the group of Marked is array: must be a text such as "customer-7", or null',
    ]
    marks = {(job.tags, job.group) for job in queue.list_jobs("marked").jobs}
    assert marks == {(("t", "7"), "customer-7"), (("u",), "8"), ((), "")}
    queue.purge("marked")


def test_the_worker_of_the_page_for_thinkphp_closes_orders(think: Project, queue: Client) -> None:
    queue.push("order-close", {"order": "3008"}, id="close-3008")
    options = ("--max-jobs=1", "--quiet")
    said = think.run("php", "vendor/bin/delay-queue-worker", *options, "worker.php")
    assert said.splitlines() == ['{"id":"3008","state":"unpaid"}', "closed order 3008"]
    assert queue.get("close-3008") is None


@pytest.fixture(scope="module")
def yii(framework: Framework) -> Project:
    file = str(STAND_INS / "yii2_queue.php")
    own = {"app\\jobs\\": "jobs/"}
    project = framework("yii2-queue", "yiisoft/yii2-queue", "2.3.8", file, autoload=own)
    close_order = (REPOSITORY / "examples/yii/CloseOrder.php").read_text("utf-8")
    project.write("jobs/CloseOrder.php", close_order)
    return project


def test_yii2_queue_pushes_removes_cancels_and_works(yii: Project, queue: Client) -> None:
    said = yii.php(
        """
        use app\\jobs\\CloseOrder;
        use DelayQueue\\Yii2\\Queue;

        class Tagged extends CloseOrder
        {
            public function tags(): array
            {
                return ["order:$this->order"];
            }
        }

        $queue = new Queue(['topic' => 'yii', 'retryDelay' => 0]);
        $id = $queue->delay(1800)->push(new CloseOrder(['order' => '1001']));
        echo $queue->status($id) === Queue::STATUS_WAITING ? 'waits' : 'no', "\\n";
        echo $queue->remove($id) ? 'removed' : 'no', ' ', $queue->remove($id) ? 'again' : 'once', "\\n";
        echo $queue->status($id) === Queue::STATUS_DONE ? 'done' : 'no', "\\n";
        $queue->priority(7)->delay(1800)->push(new Tagged(['order' => '1002']));
        echo $queue->getClient()->listJobs('yii')->jobs[0]->priority, ' ', $queue->cancel('order:1002'), "\\n";
        $queue->push(new CloseOrder(['order' => '1003']));
        $queue->push(new CloseOrder(['order' => "\\xe9"]));
        $queue->run(false);
        """
    )
    assert said.splitlines() == [
        *("waits", "removed once", "done", "7 1", "closed order 1003"),
        *(f"no order \ufffd, attempt {attempt} of 60 s" for attempt in (1, 2, 3, 4)),
    ]
    assert queue.list_jobs("yii").jobs == []


def test_a_job_of_yii_that_is_pushed_within_a_push_leaves_the_other_ones_tags_and_group(
    yii: Project, queue: Client
) -> None:
    yii.php(
        """
        class Marked extends app\\jobs\\CloseOrder
        {
            public function tags(): array
            {
                return ["order:$this->order"];
            }

            public function group(): string
            {
                return "customer-$this->order";
            }
        }

        class Audited extends DelayQueue\\Yii2\\Queue
        {
            /** As a handler of EVENT_BEFORE_PUSH: parent::push() calls both. */
            protected function pushMessage($message, $ttr, $delay, $priority)
            {
                str_contains($message, 'audit') || $this->push(new Marked(['order' => 'audit']));

                return parent::pushMessage($message, $ttr, $delay, $priority);
            }
        }

        (new Audited(['topic' => 'audited']))->push(new Marked(['order' => '1001']));
        """
    )
    marks = {(job.tags, job.group) for job in queue.list_jobs("audited").jobs}
    assert marks == {((f"order:{each}",), f"customer-{each}") for each in ("audit", "1001")}
    queue.purge("audited")


@pytest.fixture(scope="module")
def hyperf(framework: Framework) -> Project:
    file = str(STAND_INS / "hyperf_async_queue.php")
    return framework("hyperf", "hyperf/async-queue", "3.1.71", file)


HYPERF: Final = """
use DelayQueue\\Hyperf\\DelayQueueDriver;
use Hyperf\\AsyncQueue\\{Job as AsyncJob, Result};

class CloseOrder extends AsyncJob
{
    public function __construct(
        private string $order,
        protected int $maxAttempts = 0,
        private string $says = '',
        private string $data = '',
    ) {
    }

    public function tags(): array
    {
        return ["order:$this->order"];
    }

    public function handle(): ?Result
    {
        echo "works on $this->order\\n";
        if ($this->says === 'fail') {
            throw new RuntimeException("no order $this->order");
        }
        return $this->says === '' ? null : constant(Result::class . "::$this->says");
    }

    public function fail(Throwable $error): void
    {
        echo "given up: {$error->getMessage()}\\n";
    }
}

$container = new class () implements Psr\\Container\\ContainerInterface {
};
$config = ['channel' => 'hyperf', 'timeout' => 0.1, 'retry_seconds' => [0], 'handle_timeout' => 60];
$driver = new DelayQueueDriver($container, $config);
$client = new Client();
"""


def test_hyperf_pushes_deletes_and_works(hyperf: Project, queue: Client) -> None:
    said = hyperf.php(
        HYPERF
        + """
        $driver->push(new CloseOrder('1001'), 1800);
        $driver->push(new CloseOrder('1002'), 1800);
        echo json_encode($driver->info()), "\\n";
        echo json_encode([$driver->delete(new CloseOrder('1001')), $driver->delete(new CloseOrder('1001'))]), "\\n";
        echo $client->cancel('order:1002'), "\\n";
        $driver->push(new CloseOrder('1000', data: "\\xe9"));
        $driver->push(new CloseOrder('1003', 1, 'RETRY'));
        $driver->push(new CloseOrder('1004', 0, 'DROP'));
        $driver->consume();
        """
    )
    assert said.splitlines() == [
        '{"waiting":0,"delayed":2,"reserved":0,"failed":0,"timeout":0}',
        *("[true,false]", "1"),
        *("BeforeHandle 0", "works on 1000", "AfterHandle 0"),
        *("BeforeHandle 0", "works on 1003", "AfterHandle 1"),
        *("BeforeHandle 0", "works on 1004", "AfterHandle 0"),
        *("BeforeHandle 1", "works on 1003", "AfterHandle 2"),
    ]
    [given_up] = queue.list_jobs("hyperf").jobs
    assert (given_up.state, given_up.message, given_up.ttr) == ("buried", "no attempt is left", 60)
    queue.purge("hyperf")


def test_hyperf_buries_what_fails_for_good_and_reloads_it(hyperf: Project, queue: Client) -> None:
    said = hyperf.php(
        HYPERF
        + """
        $driver->push(new CloseOrder('1005', 1, 'fail'));
        $driver->consume();
        $client->push('hyperf', 'no message');
        $driver->consume();
        echo "reloaded {$driver->reload('timeout')} {$driver->reload()}\\n";
        $driver->consume();
        $driver->consume();
        var_dump($driver->flush(), $driver->flush());
        """
    )
    given_up = "given up: no order 1005"
    assert said.splitlines() == [
        *("BeforeHandle 0", "works on 1005", "RetryHandle 1"),
        *("BeforeHandle 1", "works on 1005", "FailedHandle 2", given_up),
        "reloaded 0 2",
        *("BeforeHandle 2", "works on 1005", "FailedHandle 3", given_up),
        *("bool(true)", "bool(false)"),
    ]
    assert queue.list_jobs("hyperf").jobs == []


CALLED: Final = """
/** Runs a job that a driver has popped, as its consumer does once a coroutine is free. */
$call = fn (DelayQueueDriver $driver, array $popped) => (fn () => $this->getCallback(...$popped))->call($driver);
"""


def test_hyperf_fails_no_job_whose_end_it_cannot_tell(hyperf: Project, queue: Client) -> None:
    """Users compensate in fail(): a job that succeeded is delivered again after its time instead."""
    with Partner(Answer(403, '{"code":8,"message":"no","data":null}')) as partner:
        said = hyperf.php(
            f"""
            {HYPERF}{CALLED}
            $unable = ['url' => '{partner.url}', 'retry_seconds' => '500ms'];
            $unable = new DelayQueueDriver($container, $unable + $config);
            foreach ([[0, ''], [0, 'RETRY'], [0, 'fail'], [1, 'fail']] as [$attempts, $says]) {{
                $driver->push(new CloseOrder('1006', $attempts, $says));
                try {{
                    $call($unable, $driver->pop())();
                }} catch (DelayQueue\\Client\\Exception\\Forbidden) {{
                    echo "cannot tell\\n";
                }}
            }}
            """
        )
    assert said.splitlines() == ["BeforeHandle 0", "works on 1006", "cannot tell"] * 4
    assert [path for path, _ in partner.heads] == ["/finish", "/bury", "/bury", "/release"]
    assert json.loads(partner.received[3])["delay"] == 0.5
    assert {job.state for job in queue.list_jobs("hyperf").jobs} == {"reserved"}
    queue.purge("hyperf")


@pytest.mark.parametrize("attempts", [0, 1])
def test_a_job_of_hyperf_that_is_cancelled_while_it_runs_has_not_failed(
    hyperf: Project, attempts: int
) -> None:
    said = hyperf.php(
        f"""
        {HYPERF}
        class Cancelled extends CloseOrder
        {{
            public function handle(): ?Result
            {{
                (new Client())->cancel('order:1007');

                return parent::handle();
            }}
        }}
        $driver->push(new Cancelled('1007', {attempts}, 'fail'));
        $driver->consume();
        """
    )
    assert said.splitlines() == ["BeforeHandle 0", "works on 1007"]


def test_a_job_of_hyperf_has_its_whole_time_from_when_it_begins(
    hyperf: Project, queue: Client
) -> None:
    done = Answer(200, '{"code":0,"message":"ok","data":{"deadline":1}}')
    gone = Answer(200, '{"code":2,"message":"gone","data":null}')
    with Partner(done, done, gone) as partner:
        said = hyperf.php(
            f"""
            {HYPERF}{CALLED}
            $running = new DelayQueueDriver($container, ['url' => '{partner.url}'] + $config);
            foreach (['held', 'gone'] as $order) {{
                $driver->push(new CloseOrder($order));
                $run = $call($running, $driver->pop());
                usleep(1_100_000); // all coroutines are busy
                $run();
            }}
            """
        )
    assert said.splitlines() == ["BeforeHandle 0", "works on held", "AfterHandle 0"]
    assert [path for path, _ in partner.heads] == ["/touch", "/finish", "/touch"]
    queue.purge("hyperf")


def test_a_timeout_of_0_waits_for_jobs_of_hyperf_as_in_redis(hyperf: Project) -> None:
    job = '{"topic":"t","id":"a","body":"no message","attempt":1,"receipt":"r","due":0}'
    answers = [Answer(200, f'{{"code":0,"message":"","data":{data}}}') for data in (job, "null")]
    with Partner(*answers) as partner:
        hyperf.php(
            f"""
            $config = ['url' => '{partner.url}', 'timeout' => 0];
            (new DelayQueue\\Hyperf\\DelayQueueDriver(new Hyperf\\Contract\\Container(), $config))->pop();
            """
        )
    assert [path for path, _ in partner.heads] == ["/pop", "/bury"]
    assert json.loads(partner.received[0])["timeout"] == 30


def test_hyperf_does_not_spin_while_the_server_is_away(hyperf: Project) -> None:
    said = hyperf.php(
        """
        $config = ['url' => 'http://127.0.0.1:1'];
        $driver = new DelayQueue\\Hyperf\\DelayQueueDriver(new Hyperf\\Contract\\Container(), $config);
        $began = hrtime(true);
        try {
            $driver->pop();
        } catch (DelayQueue\\Client\\Exception\\TransportException) {
            echo hrtime(true) - $began >= 1e9 ? 'has waited' : 'spins';
        }
        """
    )
    assert said == "has waited"


@pytest.fixture(scope="module")
def cpm(framework: Framework, server: QueueServer) -> Project:
    """A project of php-cpm's users, with what the page shows."""
    needs_debian("Psr/Log/autoload.php")
    version = debian_version("php-psr-log")
    project = framework("php-cpm", "psr/log", version, "Psr/Log/autoload.php")
    for file in (REPOSITORY / "examples/php-cpm").iterdir():
        project.write(file.name, at(server, file.read_text("utf-8")))
    return project


def test_handlers_of_php_cpm_stay_as_they_are(cpm: Project, queue: Client) -> None:
    for order in ("1001", "nobody"):
        cpm.run("php", "push.php", order, "0")
    ini = cpm.folder / "config.ini"
    more = "topic = order, \nmax_jobs = 2\n"  # its users may leave a comma at the end
    ini.write_text(ini.read_text("utf-8") + more, encoding="utf-8")
    said = cpm.run("php", "vendor/bin/delayqueue-php", "-c", "config.ini")
    assert "closed order 1001\n" in said
    closed, failed = queue.get("close-1001"), queue.get("close-nobody")
    assert closed is not None
    assert failed is not None
    assert (closed.state, closed.body) == (
        "finished",
        '{"order":"1001","className":"Shop\\\\OrderHandler"}',
    )
    assert (failed.state, failed.tags) == ("delayed", ("order:nobody",))
    assert failed.message.startswith("RuntimeException: no order nobody\n")


def test_a_handler_of_php_cpm_may_have_a_logger_and_a_constructor_of_its_own(cpm: Project) -> None:
    cpm.write(
        "OwnHandler.php",
        """<?php

        class OwnHandler extends DelayQueue\\Handler\\AbstractHandler
        {
            private $logger = 'mine';

            public function __construct(?Psr\\Container\\ContainerInterface $container = null)
            {
                parent::__construct($container);
            }

            protected function perform()
            {
                echo "$this->logger {$this->delayQueue->getTimeout()}\\n";
            }
        }
        """,
    )
    cpm.php(
        """
        require 'OwnHandler.php';
        $job = new DelayQueue\\Job();
        [$job->topic, $job->id, $job->delay, $job->ttr] = ['own', 'own-1', 0, 60];
        (new DelayQueue\\DelayQueue(getenv('DELAYQUEUE_URL')))->push(OwnHandler::class, $job);
        """
    )
    server = cpm.variables["DELAYQUEUE_URL"]
    lines = f"server = {server}\ntopic = own\nbootstrap = OwnHandler.php\nmax_jobs = 1\n"
    said = cpm.run("php", "vendor/bin/delayqueue-php", "-c", cpm.write("own.ini", lines))
    assert "mine 10\n" in said


def test_a_limit_of_0_in_the_file_of_php_cpm_is_refused(cpm: Project) -> None:
    """The worker ended at once, and its supervisor started it again."""
    ini = cpm.write("zero.ini", "topic = order\nmax_jobs = 0\n")
    ended = cpm.ended("php", "vendor/bin/delayqueue-php", "-c", ini)
    said = "delayqueue-php: max jobs: must be more than 0; leave it out if there is no limit\n"
    assert (ended.returncode, ended.stdout) == (1, said)


def test_what_php_cpms_programs_call_is_there(cpm: Project) -> None:
    said = cpm.php(
        """
        require 'OrderHandler.php';
        $queue = new DelayQueue\\DelayQueue(getenv('DELAYQUEUE_URL'));
        $job = new DelayQueue\\Job();
        $job->setTopic('cpm');
        $job->setId('cpm-1');
        $job->setDelay(0);
        $job->setTtr(1 * DelayQueue\\Util\\Time::MINUTE);
        $job->setBody(['order' => '7']);
        $queue->push(Shop\\OrderHandler::class, $job);
        echo $queue->client()->get('cpm-1')->ttr, "\\n";
        echo json_encode($queue->pop(['none', 'cpm'])), "\\n";
        $queue->finish('cpm-1');
        $queue->delete('cpm-1');
        foreach ([DateTime::class, 'None'] as $class) {
            try {
                $queue->push($class, $job);
            } catch (Exception $error) {
                echo $error->getMessage(), "\\n";
            }
        }
        """
    )
    assert said.splitlines() == [
        "60",
        r'{"className":"Shop\\OrderHandler","id":"cpm-1","topic":"cpm","body":{"order":"7"}}',
        r"[DateTime] is not subclass of [DelayQueue\Handler\AbstractHandler]",
        "can not find class [None]",
    ]


@pytest.mark.parametrize(("job_id", "pushes"), [("cpm-2", 3), ("*", 1)])
def test_php_cpm_repeats_no_push_whose_id_the_server_makes(
    cpm: Project, job_id: str, pushes: int
) -> None:
    """It would be a second job."""
    with Partner(Answer(503, '{"code":6,"message":"away","data":null}')) as partner:
        said = cpm.php(
            f"""
            require 'OrderHandler.php';
            $job = new DelayQueue\\Job();
            $job->setTopic('cpm');
            $job->setId('{job_id}');
            $job->setTtr(60);
            $job->setBody([]);
            try {{
                (new DelayQueue\\DelayQueue('{partner.url}'))->push(Shop\\OrderHandler::class, $job);
            }} catch (DelayQueue\\Client\\Exception\\Unavailable) {{
                echo 'away';
            }}
            """
        )
    assert (said, len(partner.received)) == ("away", pushes)
