"""The transport for Symfony Messenger, in an application of Debian's FrameworkBundle."""

import json
import shutil
import time
from collections.abc import Iterator
from typing import Final

import pytest
import yaml

from delayqueue import Client
from tests.docs.markdown import at, shown
from tests.partner import Answer, Partner
from tests.processes import REPOSITORY, QueueServer

from .project import Project, debian_version, needs_debian

HERE: Final = REPOSITORY / "tests/php/symfony"
AUTOLOADERS: Final = (
    "Symfony/Bundle/FrameworkBundle/autoload.php",
    "Symfony/Component/Messenger/autoload.php",
)
USED: Final = """<?php
use App\\Message\\CloseOrder;
use DelayQueue\\Client\\Client;
use DelayQueue\\Symfony\\{DelayQueueStamp, DelayQueueTransportFactory};
use Symfony\\Component\\Messenger\\Stamp\\{DelayStamp, TransportMessageIdStamp};
use Symfony\\Component\\Messenger\\Transport\\Serialization\\PhpSerializer;

$services = $kernel->getContainer();
$bus = $services->get('messenger.default_bus');
$transport = fn (string $name) => $services->get('messenger.receiver_locator')->get($name);
"""


class Application:
    """An application of Symfony."""

    def __init__(self, project: Project, server: QueueServer) -> None:
        self._project = project
        self._server = server

    def console(self, *words: str) -> str:
        """What `php bin/console` prints."""
        return self._project.run("php", "console", *words, DELAYQUEUE_URL=self._server.url)

    def php(self, code: str) -> str:
        """What lines of PHP print in the application."""
        return self.console("run", self._project.write("lines.php", USED + code))

    def consume(self, transport: str, *options: str) -> str:
        """What handlers print."""
        words = ("messenger:consume", transport, "--no-ansi", "--quiet", *options)
        return self.console(*words)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, server: QueueServer) -> Application:
    needs_debian(*AUTOLOADERS)
    folder = tmp_path_factory.mktemp("symfony") / "shop"
    shutil.copytree(HERE, folder)
    for name, namespace in (("CloseOrder", "Message"), ("CloseOrderHandler", "MessageHandler")):
        (folder / "src" / namespace).mkdir(parents=True)
        shutil.copy(REPOSITORY / f"examples/symfony/{name}.php", folder / "src" / namespace)
    symfony = (debian_version("php-symfony-messenger"), AUTOLOADERS)
    names = ("symfony/dependency-injection", "symfony/http-kernel", "symfony/messenger")
    project = Project(
        folder,
        "delay-queue/symfony",
        libraries=dict.fromkeys(names, symfony),
        autoload={"App\\": "src/"},
    )
    page = shown("docs/howto/symfony.md", "yaml", "# config/packages/messenger.yaml")
    messenger = yaml.safe_load(at(server, page))["framework"]["messenger"]
    messenger["transports"]["async"]["retry_strategy"] |= {"max_retries": 1, "delay": 60_000}
    project.write("messenger.json", json.dumps(messenger))
    return Application(project, server)


@pytest.fixture
def symfony(made: Application, queue: Client) -> Iterator[Application]:
    """The application, and no messages."""
    yield made
    for topic in queue.topics():
        queue.purge(topic.topic)


def test_a_delayed_message_is_handled_when_it_is_due(symfony: Application, queue: Client) -> None:
    symfony.php("$bus->dispatch(new CloseOrder('1001'), [new DelayStamp(1200)]);")
    [job] = queue.list_jobs("orders").jobs
    assert job.ttr == 60
    assert 1.1 < job.due - job.created < 1.3
    assert symfony.consume("async", "--limit=1") == "closed order 1001\n"
    assert queue.list_jobs("orders").jobs == []


def test_a_time_that_has_passed_is_now(symfony: Application, queue: Client) -> None:
    symfony.php(
        """
        $bus->dispatch(new CloseOrder('1001'), [DelayStamp::delayUntil(new DateTime('-1 minute'))]);
        $bus->dispatch(new CloseOrder('1002'), [new DelayStamp(-1)]);
        """
    )
    assert [job.state for job in queue.list_jobs("orders").jobs] == ["ready", "ready"]


def test_a_worker_of_several_transports_waits_only_when_all_are_empty(
    symfony: Application,
) -> None:
    """In each round: clients/php/tests/TurnsTest.php."""
    with Partner(Answer(200, '{"code":0,"message":"ok","data":null}')) as partner:
        symfony.php(
            f"""
            use DelayQueue\\Symfony\\WorkerTransports;
            use Symfony\\Component\\Messenger\\{{Event\\WorkerStartedEvent, Worker}};

            $dispatcher = new Symfony\\Component\\EventDispatcher\\EventDispatcher();
            $dispatcher->addListener(WorkerStartedEvent::class, [$asked = new WorkerTransports(), 'begin']);
            $factory = new DelayQueueTransportFactory($asked);
            foreach (['high', 'low'] as $name) {{
                $dsn = "delayqueue://{partner.url.removeprefix("http://")}/$name?wait=1";
                $receivers[$name] = $factory->createTransport($dsn, ['transport_name' => $name], new PhpSerializer());
            }}
            $worker = new Worker($receivers, $bus, $dispatcher);
            $dispatcher->addListener(
                Symfony\\Component\\Messenger\\Event\\WorkerRunningEvent::class,
                [$worker, 'stop'],
            );
            $worker->run();
            """
        )
    polls = [json.loads(each) for each in partner.received]
    assert [(poll["topic"], poll["timeout"]) for poll in polls[:2]] == [("high", 0), ("low", 1)]


def test_a_worker_asks_again_whether_what_failed_is_still_its_own(symfony: Application) -> None:
    away = Answer(503, '{"code":6,"message":"","data":null}')
    with Partner(
        *[away] * 3, Answer(200, '{"code":0,"message":"","data":{"deadline":5}}')
    ) as partner:
        said = symfony.php(
            f"""
            $job = new DelayQueue\\Client\\Job('orders', 'a', 'x', 1, 'r', 1.0);
            $stamp = new DelayQueue\\Symfony\\DelayQueueReceivedStamp($job, new Client('{partner.url}'));
            echo $stamp->isHeld() ? 'held' : 'lost';
            """
        )
    assert (said, len(partner.received)) == ("held", 4)


def test_a_message_that_fails_comes_again_in_the_place_of_the_failed_one_and_fails_for_good(
    symfony: Application, queue: Client
) -> None:
    began_s = time.time()
    symfony.php(
        "$bus->dispatch(new CloseOrder('nobody'), [new DelayQueueStamp(group: 'customer-7')]);"
    )
    [first] = queue.list_jobs("orders").jobs
    symfony.consume("async", "--limit=1")
    [again] = queue.list_jobs("orders").jobs
    assert (again.id, again.state, again.attempt) == (first.id, "delayed", 0)
    assert again.group == first.group == "customer-7"
    assert began_s + 50 < again.due < time.time() + 70  # as retry_strategy says
    queue.kick(again.id)
    symfony.consume("async", "--limit=1")
    assert queue.list_jobs("orders").jobs == []
    [failed] = queue.list_jobs("orders.failed").jobs
    shown = symfony.console("messenger:failed:show", "--no-ansi")
    assert failed.id in shown
    assert "no order nobody" in symfony.console("messenger:failed:show", failed.id, "--no-ansi")
    symfony.console("messenger:failed:remove", failed.id, "--force")
    assert queue.list_jobs("orders.failed").jobs == []


MEANWHILE: Final = {
    "cancelled": ("$client->cancel('order:7');", None, 0),
    "pushed again": ("$bus->dispatch(new CloseOrder('2002'), $stamps);", "2002", 0),
    "delivered again": ("$client->release('close-7', delay: 60);", "nobody", 1),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("retries", [1, 0])
def test_a_message_that_fails_is_not_sent_again_if_it_is_no_longer_its_workers(
    symfony: Application, queue: Client, meanwhile: str, retries: int
) -> None:
    """Neither in its place nor to the failure transport, where nobody may retry what was cancelled."""
    does, order, attempt = MEANWHILE[meanwhile]
    symfony.php(
        f"""
        use Symfony\\Component\\Console\\Input\\ArrayInput;
        use Symfony\\Component\\Messenger\\Event\\WorkerMessageReceivedEvent;
        use Symfony\\Component\\Messenger\\Stamp\\RedeliveryStamp;

        $client = $services->get(Client::class);
        $stamps = [new DelayQueueStamp(id: 'close-7', tags: ['order:7']), new DelayStamp(60_000)];
        $bus->dispatch(new CloseOrder('nobody'), [...$stamps, new DelayStamp(0), new RedeliveryStamp({1 - retries})]);
        $listener = function () use ($bus, $client, $stamps): void {{ {does} }};
        $services->get('event_dispatcher')->addListener(WorkerMessageReceivedEvent::class, $listener);
        $application = new Symfony\\Bundle\\FrameworkBundle\\Console\\Application($kernel);
        $application->setAutoExit(false);
        $words = ['command' => 'messenger:consume', 'receivers' => ['async'], '--limit' => 1, '--quiet' => true];
        exit($application->run(new ArrayInput($words)));
        """
    )
    jobs = queue.list_jobs("orders").jobs
    assert queue.list_jobs("orders.failed").jobs == []
    if order is None:
        assert jobs == []
    else:
        [job] = jobs
        assert (job.id, job.state, job.attempt) == ("close-7", "delayed", attempt)
        assert order in job.body


@pytest.mark.parametrize(("cancelled", "kept_from_it"), [("order:7", "true"), ("none", "false")])
def test_a_cancelled_message_that_fails_for_good_is_kept_from_failure_transports_of_any_kind(
    symfony: Application, cancelled: str, kept_from_it: str
) -> None:
    """Such as the doctrine:// of Symfony's recipe, which cannot ask whether its worker still has it."""
    said = symfony.php(
        f"""
        use Symfony\\Component\\Messenger\\Event\\WorkerMessageFailedEvent;
        use Symfony\\Component\\Messenger\\Stamp\\RedeliveryStamp;

        $bus->dispatch(new CloseOrder('1'), [new DelayQueueStamp(tags: ['order:7']), new RedeliveryStamp(1)]);
        [$received] = $transport('async')->get();
        $services->get(Client::class)->cancel('{cancelled}');
        $failed = new WorkerMessageFailedEvent($received, 'async', new RuntimeException('the card is refused'));
        echo json_encode($services->get('event_dispatcher')->dispatch($failed)->willRetry());
        """
    )
    assert said.splitlines()[-1:] == [kept_from_it], said  # after what Messenger logs


def test_a_message_whose_handler_outlives_its_ttr_is_not_repeated_for_ever(
    symfony: Application, queue: Client
) -> None:
    """Nobody holds it when it fails, so Messenger's retries do not count it: the server does, and buries it."""
    symfony.php("$bus->dispatch(new CloseOrder('1001'));")
    [found] = queue.list_jobs("orders").jobs
    job = queue.get(found.id, options=True)
    assert job is not None
    assert job.retry is not None
    assert (job.retry[:4], job.retry[-1], len(job.retry)) == ((1, 2, 4, 8), 3600, 19)


def test_a_message_of_the_failure_transport_that_fails_again_stays_one_job(
    symfony: Application, queue: Client
) -> None:
    symfony.php(
        """
        use Symfony\\Component\\Messenger\\Envelope;
        use Symfony\\Component\\Messenger\\Stamp\\{RedeliveryStamp, SentToFailureTransportStamp};

        $stamps = [new SentToFailureTransportStamp('async'), new RedeliveryStamp(0)];
        $transport('failed')->send(new Envelope(new CloseOrder('1'), $stamps));
        [$received] = $transport('failed')->get();
        $transport('failed')->send($received->with(new RedeliveryStamp(1))); // and here its worker dies
        """
    )
    [job] = queue.list_jobs("orders.failed").jobs
    assert job.state == "ready"


def test_a_failed_message_can_be_handled_once_more(symfony: Application, queue: Client) -> None:
    symfony.php(
        "$transport('failed')->send(new Symfony\\Component\\Messenger\\Envelope(new CloseOrder('1002')));"
    )
    [failed] = queue.list_jobs("orders.failed").jobs
    assert "closed order 1002" in symfony.console("messenger:failed:retry", failed.id, "--force")
    assert queue.list_jobs("orders.failed").jobs == []


def test_a_message_has_an_id_and_tags_by_which_it_is_cancelled(
    symfony: Application, queue: Client
) -> None:
    said = symfony.php(
        """
        $stamp = new DelayQueueStamp(id: 'close-1001', tags: ['order:1001'], ttr: 600, priority: 7, group: 'g');
        foreach ([1, 2] as $_) { // the second takes the place of the first
            $envelope = $bus->dispatch(new CloseOrder('1001'), [$stamp, new DelayStamp(30 * 60 * 1000)]);
        }
        echo $envelope->last(TransportMessageIdStamp::class)->getId(), "\\n";
        $job = $services->get(Client::class)->get('close-1001');
        echo "$job->ttr $job->priority $job->group\\n";
        echo count(iterator_to_array($transport('async')->all())), ' ', $transport('async')->getMessageCount(), "\\n";
        echo $transport('async')->find('close-1001')->getMessage()->order, "\\n";
        var_dump($transport('failed')->find('close-1001'));
        echo $services->get(Client::class)->cancel('order:1001');
        """
    )
    assert said.splitlines() == ["close-1001", "600 7 g", "1 0", "1001", "NULL", "1"]


def test_what_the_page_shows_cancels_a_message(symfony: Application, queue: Client) -> None:
    lines = shown("docs/howto/symfony.md", "php", "$bus->dispatch(new CloseOrder('1001'), [\n")
    said = symfony.php(
        f"$client = $services->get(Client::class);\n{lines}\nvar_dump($client->get('close-1001'));"
    )
    assert said == "NULL\n"


def test_a_body_that_is_none_of_messengers_is_buried_with_the_reason(
    symfony: Application, queue: Client
) -> None:
    bodies = {
        "no json": "the body is not JSON: Syntax error",
        "[7]": "the body is not one of Symfony Messenger",
        '{"body":"x","headers":{}}': "Could not decode",
    }
    for number, body in enumerate(bodies):
        queue.push("orders", body, id=f"poison-{number}", priority=1)
    symfony.php("$bus->dispatch(new CloseOrder('1001'));")
    assert symfony.consume("async", "--limit=1") == "closed order 1001\n"
    for number, reason in enumerate(bodies.values()):
        job = queue.get(f"poison-{number}")
        assert job is not None
        assert job.state == "buried"
        assert job.message.startswith(reason)


def test_a_worker_that_was_too_slow_ends_nobodys_message(
    symfony: Application, queue: Client
) -> None:
    symfony.php(
        """
        $bus->dispatch(new CloseOrder('1001'), [new DelayQueueStamp(id: 'slow')]);
        [$envelope] = $transport('async')->get();
        $client = $services->get(Client::class);
        $client->release('slow'); // as when its ttr runs out
        $client->pop('orders', wait: 2);
        $transport('async')->ack($envelope);
        """
    )
    job = queue.get("slow")
    assert job is not None
    assert (job.state, job.attempt) == ("reserved", 2)


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        ("delayqueue://a%2Fb@host:1/%E8%AE%A2%E5%8D%95?ttr=5&tls=1", "https://host:1 a/b 订单 5 5"),
        ("delayqueue://host", "http://host:9277  messages 7 5"),
        ("delayqueue://host/0?wait=0", "http://host:9277  0 7 0"),
        ("delayqueue:///orders", "The DSN must be delayqueue://"),
        ("delayqueue://:SECRET@host/orders", "The DSN has a password or a fragment"),
        ("delayqueue://SEC#RET@host/orders", "The DSN has a password or a fragment"),
        ("delayqueue://host/orders?ttr=1.9", "http://host:9277  orders 1.9 5"),  # refused by a push
        (
            "delayqueue://host?wayt=1",
            "Unknown option: wayt. There are topic, token, ttr, wait, tls.",
        ),
    ],
)
def test_a_dsn_says_where_the_server_is_and_what_is_meant(
    symfony: Application, dsn: str, said: str
) -> None:
    code = f"""
    /** A private property. */
    function of(object $object, string $name): mixed
    {{
        return (fn () => $this->$name)->call($object);
    }}

    try {{
        $made = (new DelayQueueTransportFactory())->createTransport('{dsn}', ['ttr' => '7'], new PhpSerializer());
        $address = of(of($made, 'client'), 'address');
        $token = substr($address->headers['Authorization'] ?? '', strlen('Bearer '));
        echo "$address->url $token ", of($made, 'topic'), ' ', of($made, 'ttr'), ' ', of($made, 'wait');
    }} catch (InvalidArgumentException $error) {{
        echo $error->getMessage();
    }}
    """
    assert symfony.php(code).startswith(said)
