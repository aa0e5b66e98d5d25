"""The PHP client, in a project of a user, on a real server and before a partner that answers as it is told."""

import asyncio
import functools
import json
import socket
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest

from delayqueue import Client
from delayqueue.client import Job
from faults.proxy import Proxy
from tests.certificates import make
from tests.client.every_verb import covers
from tests.partner import Answer, Partner
from tests.processes import LOOPBACK, REPOSITORY, Processes, QueueServer, StoreServer
from tests.waiting import until

from .project import DEBIAN, Project, needs_debian

HERE: Final = REPOSITORY / "tests" / "php"
# they answer probes, text or a page, or are the description itself
NO_VERBS: Final = {"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"}
OK: Final = Answer(200, '{"code":0,"message":"ok","data":null}')
AWAY: Final = Answer(503, '{"code":6,"message":"the store is unavailable","data":null}')
GONE: Final = Answer(200, '{"code":2,"message":"no such job","data":null}')
STALE: Final = Answer(200, '{"code":4,"message":"the receipt is stale","data":null}')
PAGE_413, PAGE_502, PAGE_504 = (Answer(status, "<html></html>") for status in (413, 502, 504))
JOB: Final = {"topic": "t", "id": "a", "body": "x", "attempt": 1, "receipt": "r", "due": 1.0}
HELD: Final = "new \\DelayQueue\\Client\\Job('t', 'a', 'x', 1, 'r', 1.0)"


def data_of(value: object) -> Answer:
    return Answer(200, json.dumps({"code": 0, "message": "ok", "data": value}))


@pytest.fixture(scope="module")
def calls(project: Project) -> list[dict[str, Any]]:
    """A call of every verb with every argument: `path`, `request`, `data` of the answer, `result` of the client."""
    return [
        json.loads(line) for line in project.run("php", str(HERE / "every_verb.php")).splitlines()
    ]


def test_every_endpoint_can_be_called_with_every_field(
    server: QueueServer, calls: list[dict[str, Any]]
) -> None:
    with urlopen(f"{server.url}/openapi.json") as answer:
        described = json.load(answer)
    sent: dict[str, set[str]] = {}
    for call in calls:
        requests = call["request"] if isinstance(call["request"], list) else [call["request"]]
        sent.setdefault(call["path"], set()).update(*requests)
    paths = {path: of for path, of in described["paths"].items() if path not in NO_VERBS}
    assert sent == {path: fields_of(described, of["post"]) for path, of in paths.items()}


def fields_of(described: dict[str, Any], operation: dict[str, Any]) -> set[str]:
    """The fields that an endpoint takes."""
    if "requestBody" not in operation:
        return set()
    schemas = described["components"]["schemas"]

    def named(reference: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = schemas[reference["$ref"].rpartition("/")[2]]
        return found

    schema = named(operation["requestBody"]["content"]["application/json"]["schema"])
    one = named(schema["anyOf"][0]) if "anyOf" in schema else schema
    return set(one["properties"])


def test_answers_are_read_to_the_last_member(calls: list[dict[str, Any]]) -> None:
    refused = [call["result"] for call in calls if is_refusal(call["result"])]
    assert refused == [{"refused": 2, "message": "none: no such subscriber"}]
    compared = set()
    for call in calls:
        result, data = call["result"], call["data"]
        if isinstance(result, list) and isinstance(data, dict):
            data = data["results"]
        is_answer = isinstance(data, list | dict) and isinstance(result, list | dict)
        if is_answer and not is_refusal(result):
            assert covers(result, data), call
            compared.add(call["path"])
    held = {call["path"] for call in calls if "held_by" in json.dumps(call["data"])}
    assert held == {"/get", "/find"}
    assert {
        "/get",
        "/list",
        "/topics",
        "/stats",
        "/subscribers",
        "/schedules",
        "/buried",
    } < compared


def is_refusal(result: object) -> bool:
    return isinstance(result, dict) and "refused" in result


def test_a_refusal_is_an_exception_of_its_code(project: Project) -> None:
    classes = {
        1: "InvalidRequest",
        2: "NoSuchJob",
        3: "WrongState",
        4: "StaleReceipt",
        5: "JobExists",
        6: "Unavailable",
        7: "Unauthorized",
        8: "Forbidden",
        9: "TooLarge",
        10: "TooManyRequests",
        11: "TopicFull",
        99: "QueueException",
    }
    answers = [Answer(200, f'{{"code":{code},"message":"why","data":null}}') for code in classes]
    with Partner(*answers) as partner:
        said = project.php(
            """
            foreach (range(1, 12) as $_) {
                try {
                    (new Client())->stats();
                } catch (DelayQueue\\Client\\Exception\\QueueException $error) {
                    echo $error->getCode(), ' ', $error->getMessage(), ' ', $error::class, "\\n";
                }
            }
            """,
            DELAYQUEUE_URL=partner.url,
        )
    expected = [
        f"{code} why DelayQueue\\Client\\Exception\\{name}" for code, name in classes.items()
    ]
    assert said.splitlines() == expected


# what is called, the answers, and what the client makes of them: a result, or the class of an exception
REPEATS: Final = [
    ("push('t', id: 'a')", [AWAY, AWAY, OK], "a", "a push with a known id is repeated"),
    ("push('t', ifExists: 'fail')", [AWAY], "Unavailable", "it would find itself"),
    ("push('t', id: '*')", [data_of({"id": "made"})], "made", "the server has made its id"),
    ("push('t', id: '*')", [AWAY], "Unavailable", "a second push would be a second job"),
    ("finish('a')", [AWAY, GONE], "", "the first try may have ended it"),
    ("finish('a')", [GONE], "NoSuchJob", "nobody has ended it"),
    ("finishMany(['a'])[0]->code", [AWAY, data_of([{"id": "a", "code": 2}])], "0", "a batch, too"),
    ("finish('a')", [AWAY], "Unavailable", "in the end it is told"),
    ("finish('a')", [PAGE_502, PAGE_504, OK], "", "a proxy got no answer from the server"),
    ("pop('t', wait: 0)", [PAGE_502], "TransportException", "the server may have handed out a job"),
    ("push('t')", [PAGE_413], "TooLarge", "a proxy does not let it through, another time either"),
    ("stats()", [AWAY, data_of(7)], "TransportException", "that is no answer of ours"),
    ("pop('t', wait: 0)", [AWAY], "Unavailable", "a second pop would take a second job"),
    ("release('a')", [AWAY], "Unavailable", "the second could release the next attempt"),
    (f"release({HELD})", [AWAY, data_of({"due": 5.0})], "5", "its receipt is that of one attempt"),
    (f"release({HELD})", [AWAY, STALE], "Unavailable", "the first try may have done it"),
    (f"bury({HELD})", [PAGE_502, GONE], "TransportException", "as a release"),
    ("kick('a')", [AWAY], "Unavailable", "it may have been buried again meanwhile"),
    ("reschedule('a', due: 1)", [AWAY, data_of({"due": 1.0})], "1", "the same time is the same"),
    ("reschedule('a', delay: 1)", [AWAY], "Unavailable", "a delay counts from another moment"),
    ("reschedule('a', by: 1)", [AWAY], "Unavailable", "it would move twice"),
    ("cancel('t')", [AWAY], "Unavailable", "it would count other jobs"),
    ("take('t', end: 1)", [AWAY], "Unavailable", "a second take would take other jobs"),
    (
        "subscribe('a', 't', 'http://x/', retry: ['max' => 3, 'jitter' => 0.5])",
        [AWAY],
        "Unavailable",
        "the server would draw other delays, and find another subscriber",
    ),
    (
        "subscribe('a', 't', 'http://x/', retry: ['max' => 3, 'jitter' => 0.5], ifExists: 'replace')",
        [AWAY, OK],
        "",
        "whatever it finds, it replaces",
    ),
    ("get('a', wait: 5)", [AWAY, data_of(None)], "", "no job is an answer, not a short poll"),
    ("touch('a')", [AWAY, data_of({"deadline": 5})], "5", "it only begins anew"),
    (
        "pop('t', wait: 0)",
        [Answer(429, '{"code":10,"message":"","data":null}', {"Retry-After": "0"}), data_of(JOB)],
        "job",
        "nothing was done",
    ),
    (
        "stats()",
        [Answer(429, '{"code":10,"message":"","data":null}', {"Retry-After": "60"})],
        "TooManyRequests",
        "who calls decides on so long a wait",
    ),
]


@pytest.mark.parametrize(("call", "answers", "result", "why"), REPEATS)
def test_what_may_be_repeated_is_and_nothing_else(
    project: Project, call: str, answers: list[Answer], result: str, why: str
) -> None:
    once = len(answers) == 1
    repeats = once and result in {"Unavailable"} and call in {"finish('a')"}
    with Partner(*answers) as partner:
        said = project.php(
            f"""
            try {{
                $result = (new Client())->{call};
                echo is_object($result) ? 'job' : $result;
            }} catch (DelayQueue\\Client\\Exception\\DelayQueueException $error) {{
                echo preg_replace('/.*\\\\\\\\/', '', $error::class);
            }}
            """,
            DELAYQUEUE_URL=partner.url,
        )
    assert said == result, why
    assert len(partner.received) == (3 if repeats else len(answers)), why


def test_a_repeated_push_leaves_a_job_to_its_worker_if_the_client_has_made_its_id(
    project: Project,
) -> None:
    """Nobody else has that id; a push that may be meant to replace a job is sent as it is."""
    ways = {
        "push('t')": "keep",
        "push('t', group: 'a')": "keep",
        "push('t', ifExists: 'replace')": "replace",
        "push('t', maxWait: 60)": None,
        "push('t', id: 'a')": None,
    }
    with Partner(*[OK] * len(ways)) as partner:
        calls = "".join(f"(new Client())->{way};" for way in ways)
        project.php(calls, DELAYQUEUE_URL=partner.url)
    sent = [json.loads(body).get("if_exists") for body in partner.received]
    assert sent == [*ways.values()]


async def test_a_pop_is_not_repeated_by_libcurl_behind_our_back(
    project: Project, server: QueueServer, queue: Client
) -> None:
    queue.push_many([Job(topic="once"), Job(topic="once")])
    code = """
        $queue = new Client();
        $queue->resume('once'); // leaves a connection
        touch('open');
        while (!file_exists('go')) {
            usleep(10_000);
            clearstatcache();
        }
        try {
            $queue->pop('once', wait: 1);
        } catch (DelayQueue\\Client\\Exception\\TransportException $error) {
            echo $error->getMessage();
        }
        """
    async with Proxy(server.port) as proxy:
        url = f"http://{proxy.address}"
        running = asyncio.create_task(asyncio.to_thread(project.php, code, DELAYQUEUE_URL=url))
        await until((project.folder / "open").exists)
        proxy.drop_next_answers()
        (project.folder / "go").touch()
        assert await running == f"{url}/pop: the connection broke before the answer"
    [counts] = queue.topics("once")
    assert (counts.ready, counts.reserved) == (1, 1)
    queue.purge("once")


async def test_a_push_of_the_client_to_copy_is_not_repeated_by_libcurl_either(
    project: Project, server: QueueServer, queue: Client
) -> None:
    code = f"""<?php require '{REPOSITORY}/examples/php/delay_queue.php';
        queue('resume', ['topic' => 'copied-once']); // leaves a connection
        touch('copied-open');
        while (!file_exists('copied-go')) {{
            usleep(10_000);
            clearstatcache();
        }}
        try {{
            queue('push', ['topic' => 'copied-once', 'id' => '*', 'ttr' => 60, 'body' => str_repeat('x', 100_000)]);
        }} catch (QueueError $error) {{
            echo $error->getCode();
        }}
        """
    project.write("copied.php", code)
    async with Proxy(server.port) as proxy:
        run = functools.partial(project.run, DELAYQUEUE_URL=f"http://{proxy.address}")
        running = asyncio.create_task(asyncio.to_thread(run, "php", "copied.php"))
        await until((project.folder / "copied-open").exists)
        proxy.drop_next_answers()
        (project.folder / "copied-go").touch()
        assert await running == "-1"
    assert [topic.ready for topic in queue.topics("copied-once")] == [1]
    queue.purge("copied-once")


def test_the_client_to_copy_sends_what_it_is_given(
    project: Project, server: QueueServer, queue: Client
) -> None:
    code = f"""<?php require '{REPOSITORY}/examples/php/delay_queue.php';
        echo gettype(queue('stats', [])), ' ';
        $call = ['url' => 'https://example.com/', 'headers' => new stdClass()];
        insist('push', ['topic' => 'copied', 'id' => 'copied-sent', 'ttr' => 60, 'delay' => 600, 'call' => $call]);
        echo gettype(insist('stats', []));
        """
    assert project.run("php", project.write("copied.php", code), DELAYQUEUE_URL=server.url) == (
        "array array"
    )
    queue.delete("copied-sent")


def test_a_server_that_hangs_holds_a_caller_for_the_limit_of_the_call_alone(
    project: Project,
) -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:  # connections wait there for ever
        said = project.php(
            """
            $began = hrtime(true);
            try {
                (new Client(timeout: '1s', retries: 9))->push('t');
            } catch (DelayQueue\\Client\\Exception\\TransportException) {
                echo hrtime(true) - $began >= 1e9 ? 'gave up' : 'too early';
            }
            """,
            DELAYQUEUE_URL=f"http://{LOOPBACK}:{listener.getsockname()[1]}",
        )
        assert said == "gave up"
        listener.accept()[0].close()
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()  # it was not tried again


def test_calls_share_a_connection_also_after_an_error(
    project: Project, processes: Processes, redis_server: StoreServer
) -> None:
    code = """
        /** What this process has open; libcurl itself takes some. */
        function sockets(): int
        {
            $targets = array_map(fn ($file) => (string) @readlink($file), glob('/proc/self/fd/*'));
            return count(array_filter($targets, fn ($target) => str_starts_with($target, 'socket:')));
        }

        $queue = new Client(token: 'a-secret-of-tests');
        $queue->push('t', str_repeat('x', 100_000), id: 'a');
        $before = sockets();
        foreach (range(1, 9) as $_) {
            try {
                $queue->kick('none');
            } catch (DelayQueue\\Client\\Exception\\NoSuchJob) {
            }
        }
        echo sockets() - $before, ' ', strlen($queue->get('a')->body);
        """
    server = processes.server(redis_server, language="en", auth_tokens="admin:a-secret-of-tests")
    assert project.php(code, DELAYQUEUE_URL=server.url) == "0 100000"
    assert (
        project.php(
            """
            try {
                (new Client(token: 'another-secret-of-tests'))->stats();
            } catch (DelayQueue\\Client\\Exception\\Unauthorized $error) {
                echo $error->getMessage();
            }
            """,
            DELAYQUEUE_URL=server.url,
        )
        == "unknown token"
    )


def test_an_empty_address_is_that_of_the_variable(project: Project) -> None:
    said = project.php("echo (new Client(''))->push('t', id: 'a'), (new Client())->delete('a');")
    assert said == "a"


def test_a_server_with_a_certificate_of_its_own_is_reached_over_tls_and_another_is_not(
    project: Project, processes: Processes, redis_server: StoreServer, tmp_path: Path
) -> None:
    pair = make(tmp_path, "server")
    server = processes.server(
        redis_server, pair.context(), language="en", tls_cert=pair.cert, tls_key=pair.key
    )
    said = project.php(
        f"""
        use DelayQueue\\Client\\Transport\\CurlTransport;
        $queue = new Client(transport: new CurlTransport([CURLOPT_CAINFO => '{pair.cert}']));
        echo $queue->push('tls', id: 'tls-1'), "\\n";
        try {{
            (new Client())->stats();
        }} catch (DelayQueue\\Client\\Exception\\TransportException $error) {{
            echo $error->getMessage();
        }}
        """,
        DELAYQUEUE_URL=server.url,
    )
    first, second = said.splitlines()
    assert first == "tls-1"
    assert "certificate" in second


# what the parent does while or after a fork ends by itself, by exit or by an error
FORKS: Final = """
use DelayQueue\\Client\\Transport\\CurlTransport;

$queue = new Client(transport: new CurlTransport([CURLOPT_CAINFO => getenv('CA')]), retries: 0);
$calls = [
    'a pop while it ends' => fn () => $queue->pop('forks', wait: 1),
    'a pop after it' => fn () => pcntl_wait($status) && !$queue->pop('forks', wait: 0.1),
    'a release after it' => fn () => pcntl_wait($status) && $queue->release('nobody'),
    'a push while it ends' => fn () => usleep(150_000) ?: $queue->push('forks', id: 'forks-1', delay: 600),
    'its own call' => fn () => $queue->pop('forks', wait: 1),
];
foreach (['exit' => fn () => exit(7), 'error' => fn () => none()] as $end => $ends) {
    foreach ($calls as $what => $call) {
        $queue->get('x'); // the connection that both have
        if (pcntl_fork() === 0) {
            ini_set('display_errors', '0');
            ini_set('log_errors', '0');
            $what === 'its own call' && $queue->get('x');
            usleep(150_000);
            $ends();
        }
        try {
            $call();
        } catch (DelayQueue\\Client\\Exception\\NoSuchJob) {
            // an answer
        } catch (DelayQueue\\Client\\Exception\\TransportException $error) {
            echo "$what, $end: {$error->getMessage()}\\n";
        }
        while (pcntl_wait($status) > 0);
    }
}
echo pcntl_wexitstatus($status), " {$queue->get('forks-1')->id}";
"""


def test_a_fork_that_ends_leaves_its_parents_connections_alone(
    project: Project, processes: Processes, redis_server: StoreServer, tmp_path: Path
) -> None:
    pair = make(tmp_path, "server")
    server = processes.server(
        redis_server, pair.context(), language="en", tls_cert=pair.cert, tls_key=pair.key
    )
    said = project.php(FORKS, DELAYQUEUE_URL=server.url, CA=str(pair.cert))
    assert said == "255 forks-1"


def test_a_fork_does_not_disturb_who_copied_the_client_either(
    project: Project, queue: Client
) -> None:
    ids = ("copied-parent", "copied-child")
    for each in ids:
        queue.push("copied", id=each, delay=600)
    code = f"""<?php require '{REPOSITORY}/examples/php/delay_queue.php';
    queue('get', ['id' => 'copied-parent']); // the connection that both would have
    $child = pcntl_fork();
    $id = $child === 0 ? 'copied-child' : 'copied-parent';
    for ($calls = 0; $calls < 200; $calls++) {{
        if (queue('get', ['id' => $id])['id'] !== $id) {{
            echo "$id got the answer of the other one";
            break;
        }}
    }}
    $child === 0 || pcntl_wait($status);
    """
    assert project.run("php", project.write("copied.php", code)) == ""
    for each in ids:
        queue.delete(each)


def test_a_call_in_a_signal_handler_or_a_fork_does_not_disturb_the_one_under_way(
    project: Project, queue: Client
) -> None:
    said = project.php(
        """
        $queue = new Client();
        $queue->push('main', 'first', id: 'first'); // loads the classes: PHP does not load one twice, in a handler, too
        pcntl_async_signals(true);
        $pushed = 0;
        pcntl_signal(SIGUSR1, function () use ($queue, &$pushed) {
            $queue->push('signal', 'from the handler', id: 'signal-' . ++$pushed);
        });
        $parent = getmypid();
        $child = pcntl_fork();
        if ($child === 0) {
            for ($i = 0; $i < 50; $i++) {
                posix_kill($parent, SIGUSR1);
                usleep(2000);
            }
            $queue->push('signal', 'from the child', id: 'child');
            posix_kill(getmypid(), SIGKILL);
        }
        for ($sent = 0; $sent === 0 || pcntl_waitpid($child, $status, WNOHANG) === 0; $sent++) {
            $queue->push('main', "$sent", id: "main-$sent");
        }
        foreach ($queue->getMany(array_map(fn ($i) => "main-$i", range(0, min($sent, 900) - 1))) as $i => $job) {
            $job?->body === "$i" || print("main-$i is wrong\\n");
        }
        echo $pushed > 0 ? 'interrupted ' : 'never ', $queue->get('child')->body, ' ', $queue->get('signal-1')->body;
        """
    )
    assert said == "interrupted from the child from the handler"
    queue.purge("main")
    queue.purge("signal")


def test_a_wait_can_be_ended_and_takes_no_job(project: Project, queue: Client) -> None:
    said = project.php(
        """
        $queue = new Client();
        pcntl_async_signals(true);
        $stop = false;
        pcntl_signal(SIGALRM, function () use (&$stop) { $stop = true; });
        pcntl_alarm(1);
        $began = microtime(true);
        var_dump($queue->pop('stopped', wait: 60, stop: function () use (&$stop) { return $stop; }));
        echo microtime(true) - $began < 60 ? 'soon' : 'late';
        """
    )
    assert said == "NULL\nsoon"
    queue.push("stopped", id="stopped-1")
    job = queue.pop("stopped", wait=5)
    assert job is not None
    assert job.attempt == 1
    queue.finish(job)


def test_an_empty_poll_that_has_not_waited_does_not_let_a_loop_spin(project: Project) -> None:
    code = """
        eval('namespace DelayQueue\\Client; // an answer takes no time
            function hrtime(bool $asNumber): int { return 0; }');
        $began = microtime(true);
        (new Client(retries: 1))->pop('t');
        echo microtime(true) - $began >= 1;
        """
    with Partner(OK) as partner:
        said = project.php(code, DELAYQUEUE_URL=partner.url)
    assert said == "1"
    assert len(partner.received) == 2


def test_a_client_of_psr_18_and_a_logger_of_psr_3_can_be_used(
    project: Project, server: QueueServer
) -> None:
    needs_debian("GuzzleHttp/autoload.php", "Psr/Log/autoload.php")
    said = project.php(
        f"""
        error_reporting(E_ALL & ~E_DEPRECATED);
        require '{DEBIAN}/GuzzleHttp/autoload.php';
        require '{DEBIAN}/Psr/Log/autoload.php';
        use DelayQueue\\Client\\Transport\\Psr18Transport;
        use Psr\\Log\\AbstractLogger;

        class Lines extends AbstractLogger
        {{
            public function log($level, $message, array $context = []): void
            {{
                echo "$level $context[path]\\n";
            }}
        }}

        $factory = new GuzzleHttp\\Psr7\\HttpFactory();
        $transport = new Psr18Transport(new GuzzleHttp\\Client(['http_errors' => false]), $factory, $factory);
        $queue = new Client(transport: $transport);
        $queue->push('psr', ['n' => 1], id: 'psr-1');
        echo $queue->pop('psr', wait: 1)->json()['n'], "\\n";
        $queue->delete('psr-1');
        try {{
            (new Client('http://127.0.0.1:1', transport: $transport, logger: new Lines()))->finish('a');
        }} catch (DelayQueue\\Client\\Exception\\TransportException $error) {{
            echo $error::class;
        }}
        """
    )
    assert said.splitlines() == [
        "1",
        *["warning /finish"] * 2,
        "DelayQueue\\Client\\Exception\\TransportException",
    ]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("new Client('localhost:9277')", "URL localhost:9277: must be http://HOST:PORT or https://HOST:PORT"),
        ("$_ENV['DELAYQUEUE_URL'] = 'queue'; new Client()", "DELAYQUEUE_URL=queue: must be http"),
        ("new Client('http://shop:secret@host:x')", "URL http://***@host:x: must be http"),
        ("new Client('http://host?tls=no')", "URL http://host?tls=no: must be http://HOST:PORT or https"),
        ("new Client('http://shop:secret@host', 'token')", "URL http://***@host: it has a password"),
        ("$_ENV['DELAYQUEUE_TOKEN'] = 'a b'; new Client()", "DELAYQUEUE_TOKEN: must be printable ASCII"),
        ("new Client(token: \"a\\nb\")", "the token: must be printable ASCII"),
        ("(new Client())->push('t', \"\\xe9\")", "the body is not UTF-8: encode it, such as by base64_encode()"),
        ("(new Client())->push('t', delay: 'soon')", '"soon": must be a text like "500ms", "15s", "30m", "1.5h", "1d"'),
        ("(new Client())->push('t', tags: [\"\\xe9\"])", "the request for /push: tags.0 is not UTF-8: encode it"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_told_before(project: Project, code: str, message: str) -> None:
    said = project.php(
        f"try {{ {code}; }} catch (InvalidArgumentException $error) {{ echo $error->getMessage(); }}"
    )
    assert said.startswith(message)


def test_an_id_that_is_made_for_a_job_of_a_group_begins_with_it(project: Project) -> None:
    said = project.php(
        """
        foreach ([new NewJob('t', group: ' a '), new NewJob('t', id: 'own', group: 'a'), new NewJob('t')] as $job) {
            echo preg_replace('/[0-9a-f]{32}$/', '#', $job->id), "\\n";
        }
        """
    )
    assert said.splitlines() == ["{a}#", "own", "#"]
