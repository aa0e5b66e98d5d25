"""What each endpoint, script, command, method, setting, metric and field of /push has to be in: `make contract`.

Each duty below compares what the code declares with a page, a table or the tests. tests/tools/test_contract.py calls
the same duties, so that there is one list and one message.
"""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple, TypeGuard

from delayqueue.cli.remote import REMOTE
from delayqueue.cli.subcommand import Subcommand
from delayqueue.client.verbs import Verbs
from delayqueue.config.config import OPTIONS
from delayqueue.config.option import Option
from delayqueue.domain.push_fields import FIELDS, PushField
from delayqueue.errors import Code
from delayqueue.store import verbs
from delayqueue.store.scripts import NEVER, NO_WRITES, ScriptHead, Scripts
from delayqueue.web.endpoint import Endpoint
from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.web.http import HttpResponse
from delayqueue.web.requests import Request
from scripts.generate import RUN, outdated
from tests.api.test_tokens import BY_ID, NAMES_NO_TOPIC, OUT_OF_REACH
from tests.client.every_verb import CALLS
from tests.docs.markdown import blocks, read, typed
from tests.field_places import CHANGELOG, DECLARATION, PHP_CALLS, in_php, places
from tests.processes import REPOSITORY

API: Final = "docs/api.md"
HEAD: Final = "| Field | Type | |\n| --- | --- | --- |\n"
API_ZH: Final = "docs/api.zh-CN.md"
CLI: Final = "docs/cli.md"
CONFIG: Final = "docs/config.md"
PHP: Final = "clients/php/src/Verbs"
# of a request, not of an endpoint: the page says once that any request can get these
OF_ANY: Final = {Code.UNAUTHORIZED, Code.FORBIDDEN, Code.TOO_LARGE, Code.TOO_MANY}
# endpoints without a method and a command of their own, and why
WITHOUT_METHOD: Final = {
    "/healthz": "a probe",
    "/readyz": "a probe",
    "/metrics": "for Prometheus",
    "/openapi.json": "for generators of code",
    "/docs": "a page",
}
# what the page on durability calls the scripts that wait for replicas before others do
WAITING: Final = {
    "push": "/push",
    "register": "/subscribe",
    "export": "imports",
    "import": "imports",
    "settle": "imports",
    "pop": "/pop",
    "reserve": "reserve",
}
# scripts that write and wait for no replica, and why
WITHOUT_WAIT: Final = {
    "add_history": "figures only",
    "await_end": "the server that waits asks again, now and then",
    "confirm": "what is imported already is dropped, and dropped again after a failover",
    "drop_ghosts": "it only removes ghosts",
    "enqueue_due": "the schedule's time is lost with the jobs: they come again, with the same ids",
    "heartbeat": "repeated all the time",
    "hold": "repeated all the time",
    "inspect": "damage is found again",
    "numbers": "those who use them know that some can come twice",
    "peek": "it only removes ghosts",
    "requeue": "nobody is told: the client is gone",
    "restore": "nobody is told: the client is gone",
    "sweep": "the server's own work, done again after a failover",
    "tick": "the server's own work, done again after a failover",
}
TESTED_IN: Final = ("api", "cli", "client", "delivery")
NO_TRIAL: Final = ("test_tokens.py", "test_openapi.py", "every_verb.py", "odd_requests.py")


class Lack(NamedTuple):
    """Something that is missing: what to add, where, and why."""

    file: str
    add: str
    because: str

    def __str__(self) -> str:
        return f"{self.file}: {self.add}, because {self.because}"


@dataclass(frozen=True, kw_only=True)
class Declared:
    """All that the code declares."""

    endpoints: Sequence[Endpoint] = ENDPOINTS
    commands: Sequence[Subcommand] = tuple(chain(*REMOTE.values()))
    methods: Collection[str] = frozenset(name for name in dir(Verbs) if not name.startswith("_"))
    heads: Mapping[str, ScriptHead] = field(default_factory=lambda: Scripts().verbs)
    options: Collection[Option] = tuple(OPTIONS.values())
    push_fields: Sequence[PushField] = FIELDS
    rows: Collection[str] = frozenset(
        row.script for row in vars(verbs).values() if type(row) is verbs.Verb
    )


def section(page: str, endpoint: Endpoint) -> str:
    """What the page says about an endpoint, "" = it has no section."""
    heading = re.escape(heading_of(endpoint))
    found = re.search(rf"^{heading}\n(.*?)(?=^##|\Z)", read(page), re.M | re.S)
    return found[1] if found else ""


def heading_of(endpoint: Endpoint) -> str:
    """The heading of its section."""
    return "### " + ", ".join(f"{method} {endpoint.path}" for method in endpoint.methods)


def sections(declared: Declared) -> Iterator[Lack]:
    """Each endpoint has a section; one that takes fields has an example there, which a test runs."""
    for endpoint in declared.endpoints:
        said = section(API, endpoint)
        if not said:
            add = f"add a section `{heading_of(endpoint)}`: fields, answer, errors, `$ curl …`"
            yield Lack(API, add, "this page is the contract")
            continue
        if not section(API_ZH, endpoint):
            yield Lack(
                API_ZH,
                f"copy the section `{heading_of(endpoint)}`; left in English if you write no Chinese",
                "the twin has the same sections",
            )
        commands = [one.command for block in blocks(said, "console") for one in typed(block)]
        commands += [block.text.strip() for block in blocks(said, "sh")]  # answers no JSON
        shown = any(f"{endpoint.path} " in f"{command} " for command in commands)
        if endpoint.takes is not None and not shown:
            example = f"curl -s localhost:9277{endpoint.path} -d '{{…}}'"
            yield Lack(
                API,
                f"add `$ {example}` and its answer to `{heading_of(endpoint)}`",
                "a test runs it",
            )


def fields(declared: Declared) -> Iterator[Lack]:
    """A section has the head of a table of fields, under which `make generate` writes the rows."""
    for endpoint in declared.endpoints:
        said = section(API, endpoint)
        if said and endpoint.takes and endpoint.takes.model_fields and HEAD not in said:
            head = HEAD.replace("\n", "` and `").removesuffix("` and `")
            yield Lack(API, f"add `{head}` to `{heading_of(endpoint)}`", "the request has fields")


def errors(declared: Declared) -> Iterator[Lack]:
    """A section names the codes that the endpoint declares."""
    for endpoint in declared.endpoints:
        said = section(API, endpoint)
        if endpoint.gives is HttpResponse or endpoint.roles is None or not said:
            continue
        if other := re.search(r"errors as (/\S+)\.", said):
            said = next(section(API, one) for one in ENDPOINTS if one.path == other[1])
        listed = re.search(r"Errors?: (.*?)\.(?=\s|\Z)", said, re.S)
        codes = re.findall(r"\d+", re.sub(r"\(.*?\)", "", listed[1], flags=re.S)) if listed else ()
        known, found = {error.code for error in endpoint.errors}, {*map(int, codes)}
        if not known <= found <= known | OF_ANY:
            line = f"Errors: {', '.join(str(int(code)) for code in sorted(known))}."
            was = f"it says {sorted(found)}" if listed else "it names none"
            yield Lack(
                API,
                f"write `{line}` in `{heading_of(endpoint)}`",
                f"@endpoint declares these, and {was}",
            )


def trials(declared: Declared) -> Iterator[Lack]:
    """A test calls each endpoint."""
    tests = [
        path.read_text("utf-8")
        for folder in TESTED_IN
        for path in (REPOSITORY / "tests" / folder).glob("*.py")
        if path.name not in NO_TRIAL
    ]
    for endpoint in declared.endpoints:
        call = rf'"{re.escape(endpoint.path)}"|\.{endpoint.name}\(|"{re.escape(endpoint.path[1:])}"'
        if not any(re.search(call, test) for test in tests):
            yield Lack(
                f"tests/api/test_{endpoint.name}.py",
                f"test what {endpoint.path} answers, for ids of several buckets, too",
                "no test calls it",
            )


def confinement(declared: Declared) -> Iterator[Lack]:
    """A token for some topics is tried on each endpoint, and may call those that take ids."""
    tried = {path for path, *_ in (*OUT_OF_REACH, *BY_ID)} | NAMES_NO_TOPIC.keys()
    for endpoint in declared.endpoints:
        if endpoint.roles is not None and endpoint.path not in tried:
            table = "BY_ID" if takes_ids(endpoint.takes) else "OUT_OF_REACH"
            yield Lack(
                "tests/api/test_tokens.py",
                f"add {endpoint.path} to {table}",
                "a token for some topics must not reach others",
            )
        if takes_ids(endpoint.takes) and endpoint.takes.without_topic is None:
            yield Lack(
                f"{endpoint.takes.__module__.replace('.', '/')}.py",
                f"set `without_topic = ()` in {endpoint.takes.__name__}",
                "the store checks whose the jobs are; else a token for some topics may not call it",
            )


def takes_ids(model: type[Request] | None) -> TypeGuard[type[Request]]:
    """Whether it names jobs by their ids only, so that the store checks whose they are."""
    return model is not None and not {"topic", "name"} & model.model_fields.keys()


def clients(declared: Declared) -> Iterator[Lack]:
    """Each endpoint has a method of the clients, which is called for each kind of client."""
    for endpoint in declared.endpoints:
        if endpoint.path not in WITHOUT_METHOD and endpoint.name not in declared.methods:
            yield Lack(
                "delayqueue/client/job_verbs.py",
                f"add a method `{endpoint.name}`, here or in its neighbours",
                f"{endpoint.path} has no method",
            )
    for method in sorted(declared.methods):
        if method not in CALLS:
            row = f'"{method}": lambda c, s: c.{method}(…),'
            yield Lack(
                "tests/client/every_verb.py", f"add `{row}`", "both clients are tried with it"
            )


def php(declared: Declared) -> Iterator[Lack]:
    """The PHP client has each method, and each is called with every field."""
    client = "".join(file.read_text("utf-8") for file in (REPOSITORY / PHP).glob("*.php"))
    for method in sorted(declared.methods):
        name = in_php(method)
        if f"function {name}(" not in client:
            yield Lack(
                f"{PHP}/JobVerbs.php",
                f"add a method `{name}`, here or in its neighbours",
                "both clients have the same methods",
            )
        if f"$queue->{name}(" not in read(PHP_CALLS):
            yield Lack(
                PHP_CALLS,
                f"add `fn () => $queue->{name}(…),` with every field",
                "a test compares the fields that it sends with those that the endpoint has",
            )


def commands(declared: Declared) -> Iterator[Lack]:
    """Each endpoint has a command, with an example on the page."""
    names = {command.name for command in declared.commands}
    for endpoint in declared.endpoints:
        if endpoint.path not in WITHOUT_METHOD and endpoint.path[1:] not in names:
            row = f'remote("{endpoint.path[1:]}", "HELP", …),'
            yield Lack(
                "delayqueue/cli/remote.py", f"add `{row}`", f"{endpoint.path} has no command"
            )
    page = read(CLI)
    for command in declared.commands:
        if not re.search(rf"^\$ (?:.*\| )?delay-queue {command.name}\b", page, re.M):
            yield Lack(
                CLI, f"add `$ delay-queue {command.name} …` and what it prints", "a test runs it"
            )


def scripts(declared: Declared) -> Iterator[Lack]:
    """Each row of store/verbs.py is tested in the store, and the page on durability says what waits for replicas."""
    tests = [
        path.read_text("utf-8")
        for folder in ("store", "engine")
        for path in (REPOSITORY / "tests" / folder).glob("*.py")
    ]
    for name in sorted(declared.rows):
        if not any(re.search(rf"\b{name}\b", test, re.I) for test in tests):
            yield Lack(
                f"tests/store/test_{name}.py",
                f"test {name}.lua in each state of a job, by `bucket.store.run_verb(…, EVERYWHERE)`",
                "no test of the store names it",
            )
    page, table = waiting()
    for name, head in declared.heads.items():
        if head.waits in {"pushes", "all"} and WAITING.get(name, name) not in table:
            yield Lack(
                page,
                f"name {name} in the row `{head.waits}` of redis.replicate, and in WAITING of tests/contract.py",
                f"{name}.lua waits for replicas then",
            )


def heads(declared: Declared) -> Iterator[Lack]:
    """A script that writes waits for replicas."""
    for name, head in declared.heads.items():
        file = f"delayqueue/store/scripts/{name}.lua"
        if head.waits == NEVER and NO_WRITES not in head.flags and name not in WITHOUT_WAIT:
            yield Lack(
                file,
                "write `-- waits  changes`, or give the reason in WITHOUT_WAIT of tests/contract.py",
                "a client was told that it is done: a failover must not undo it",
            )


def waiting() -> tuple[str, str]:
    """The page that says which calls wait for replicas, and its table."""
    for path in sorted((REPOSITORY / "docs").glob("*.md")):
        page = f"docs/{path.name}"
        if found := re.search(
            r"^\| `redis\.replicate` \| [^\n]*\n\| ---.*?\n\n", read(page), re.M | re.S
        ):
            return page, found[0]
    raise LookupError("no page has a table of redis.replicate")


def settings(declared: Declared) -> Iterator[Lack]:
    """Each setting is in the config file and has a row, whose words `make generate` writes."""
    page, conf = read(CONFIG), read("delay-queue.conf")
    rows = {*re.findall(r"^\| `([\w.]+)` \|", page, re.M)}
    known = {option.key: option for option in declared.options}
    for key, option in known.items():
        if key not in rows:
            yield Lack(CONFIG, f"add `| `{key}` | | |`", "`make generate` fills it in")
        if not re.search(rf"^{re.escape(key)} *=", conf, re.M):
            line = f"{key} = {option.default}"
            yield Lack(
                "delay-queue.conf", f"add `{line}`, and above it when to change it", "it shows all"
            )
    for key in rows - known.keys():
        yield Lack(CONFIG, f"remove the row of `{key}`", "there is no such setting")


def push_fields(declared: Declared) -> Iterator[Lack]:
    """Each field of /push is in the signatures that are written out for editors, in what tells it, and is tried."""
    [push] = [one for one in declared.commands if one.name == "push"]
    options = {
        (one.options.get("dest") or one.flags[0].lstrip("-").replace("-", "_")).removesuffix("_url")
        for one in push.arguments
    }
    for one in declared.push_fields:
        for place in places(one, options):
            if not place.is_there:
                yield Lack(place.file, place.add, f"{DECLARATION} declares it")


def tables(declared: Declared) -> Iterator[Lack]:  # what is generated knows it
    """What is generated is up to date: the tables of endpoints, methods and commands, the code of the Chinese pages."""
    for file, text in outdated():
        page = str(file.relative_to(REPOSITORY))
        if isinstance(text, ValueError):
            yield Lack(page, str(text), "`make generate` stops there")
        else:
            yield Lack(page, RUN, "it repeats what changed")


def changelog(declared: Declared) -> Iterator[Lack]:
    """Each endpoint and command has been told to users."""
    told = read(CHANGELOG)
    names = [endpoint.path for endpoint in declared.endpoints if endpoint.roles is not None]
    names += [one.name for one in declared.commands if f"/{one.name}" not in names]
    for name in names:
        if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", told):
            yield Lack(CHANGELOG, f"add a line on {name} under Unreleased", "users can see it")


DUTIES: Final[tuple[Callable[[Declared], Iterable[Lack]], ...]] = (
    *(sections, fields, errors, trials, confinement),
    *(clients, php, commands, push_fields, scripts, heads, settings, tables, changelog),
)


def main() -> int:
    declared = Declared()
    lacks = list(chain.from_iterable(duty(declared) for duty in DUTIES))
    for lack in lacks:
        sys.stdout.write(f"{lack}\n")
    sys.stdout.write(
        f"contract: {len(lacks)} missing\n" if lacks else "contract: nothing is missing\n"
    )
    return bool(lacks)


if __name__ == "__main__":
    sys.exit(main())
