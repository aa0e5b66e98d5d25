"""The packages in clients/, as Composer sees them and as a release would hold them."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import delayqueue
from delayqueue import Client
from tests.docs.follow import Follower
from tests.processes import REPOSITORY, QueueServer

from .project import DEBIAN, PACKAGES, Project, needs, needs_debian

TAG = f"v{delayqueue.__version__}"
# the versions of frameworks that the packages allow; of others 3.0
NEWEST = {
    "hyperf/async-queue": "3.1.64",  # the first that has Result
    "topthink/think-queue": "3.0.9",
    "yiisoft/yii2-queue": "2.3.8",
    **dict.fromkeys(("illuminate/contracts", "illuminate/queue", "illuminate/support"), "13.0.0"),
    **dict.fromkeys(
        ("symfony/dependency-injection", "symfony/http-kernel", "symfony/messenger"), "7.4.0"
    ),
}
# what is not for users: /tests export-ignore and so on, in .gitattributes
KEPT_BACK = {".gitattributes", "phpunit.xml.dist", "psalm.xml", "tests", "vendor", "composer.lock"}

# what PHP 8.5 has beyond 8.1, of the extensions that one would call here
FUNCTIONS = (
    "array_(all|any|find|find_key|first|last)|bc(ceil|divmod|floor|round)"
    "|curl_(multi_get_handles|share_init_persistent|upkeep)|fpow|get_(error|exception)_handler"
    "|http_(clear|get)_last_response_headers|ini_parse_quantity|json_validate"
    "|mb_(lcfirst|ltrim|rtrim|str_pad|trim|ucfirst)|memory_reset_peak_usage"
    "|openssl_cipher_key_length|pcntl_([gs]etcpuaffinity|[gs]etqos_class|waitid)"
    "|posix_(eaccess|f?pathconf|sysconf)|request_parse_body|str_(de|in)crement"
    "|stream_context_set_options"
)
# of PHP newer than 8.1, which the packages allow: a pattern, and what it must find
NEWER = {
    "a readonly class": (r"\breadonly (final |abstract )?class\b", "final readonly class A {}"),
    "a type of one value": (r"\) ?: ?(true|false|null) ?(\{|=>)", "function f(): true {}"),
    "a parameter of one value": (r"(?<![|?\w])(true|false|null) \$", "function f(null $a) {}"),
    "the type true": (r"\|true\b ?[${]", "function f(): int|true {}"),
    "a union with an intersection": (r"\(\\?\w+ ?& ?\\?[A-Z]", "function f((A&B)|null $a) {}"),
    "a constant with a type": (r"\bconst \??[\w\\|]+ \w+ ?=", "const string A = 'a';"),
    "a member of an enum's case": (r"\bconst [^;]*->", "const A = B::C->value;"),
    "a trait's constant": (r"\btrait \w+ ?\{.*\bconst\b", "trait A { const B = 1; }"),
    "a function": (rf"(?<![\w>:])({FUNCTIONS})\(", "json_validate($a)"),
    "a class": (
        r"\b(Random|Pdo|Uri|Dom|BcMath)\\\w|\b(Date\w*Error|Date\w*Exception)\b",
        "Random\\Engine",
    ),
}


FUNCTIONS_SINCE_7_2 = (
    "array_(is_list|key_first|key_last)|get_debug_type|hrtime|is_countable|mb_str_split"
    "|str_(contains|starts_with|ends_with)"
)
# what those without Composer copy, and with PHP 7.2
COPIED = ("delay_queue.php", "order_paid.php", "orders.php")
# of PHP newer than 7.2: a pattern, and what it must find
NEWER_THAN_7_2 = {
    "a match": (r"\bmatch ?\(", "match (true) {};"),
    "a thrown value": (r"(\?\?|=>|\?|:) ?throw\b", "$a ?? throw new B();"),
    "a type": (r"\): ?\??(mixed|never|static|\w+\|)", "function f(): mixed {}"),
    "a union of types": (r"[(,] ?\??\w+\|\w+ \$", "function f(int|float $a) {}"),
    "a property with a type": (
        r"\b(var|public|private|protected) \??[\w\\]+ \$",
        "private int $a;",
    ),
    "a short function": (r"\bfn ?\(", "fn ($a) => $a"),
    "an assignment if null": (r"\?\?=", "$a ??= 1;"),
    "a call unless null": (r"\?->", "$a?->b()"),
    "an argument by name": (r"[(,] ?\w+: ", "f(flags: 1)"),
    "a function as a value": (r"\(\.\.\.\)", "f(...)"),
    "a spread": (r"\[ ?\.\.\.", "[...$a]"),
    "a line in a number": (r"\d_\d", "100_000"),
    "a comma at the end of arguments": (r", ?\)", "f($a, )"),
    "an attribute": (r"#\[", "#[A]"),
    "a function": (rf"\b({FUNCTIONS_SINCE_7_2})\(", "hrtime(true)"),
    "an exception of JSON": (r"\bJSON_THROW_ON_ERROR|\bJsonException", "JSON_THROW_ON_ERROR"),
}


FILES = {
    **{name: [REPOSITORY / "examples/php" / name] for name in COPIED},
    **{name: list(path.glob("src/**/*.php")) for name, path in PACKAGES.items()},
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_copied_has_no_php_newer_than_7_2_and_a_package_none_newer_than_8_1(
    name: str,
) -> None:
    needs("php")
    newer, files = NEWER_THAN_7_2 if name in COPIED else NEWER, FILES[name]
    assert files
    # without comments, and on few lines
    code = "foreach (array_slice($argv, 1) as $file) { echo php_strip_whitespace($file), chr(0); }"
    text = subprocess.run(["php", "-r", code, *files], capture_output=True, text=True, check=True)
    for path, stripped in zip(files, text.stdout.split("\0"), strict=False):
        found = [what for what, (pattern, _) in newer.items() if re.search(pattern, stripped, re.S)]
        assert found == [], path


@pytest.mark.parametrize(
    ("pattern", "example"),
    [*NEWER_THAN_7_2.values(), *NEWER.values()],
    ids=[*NEWER_THAN_7_2, *NEWER],
)
def test_newer_php_is_found(pattern: str, example: str) -> None:
    assert re.search(pattern, example, re.S)


@pytest.mark.parametrize("php", ["php8.1", "php8.2", "php8.3", "php8.4", "php8.5"])
def test_php_loads_every_class_and_calls_every_verb_without_a_notice(
    project: Project, server: QueueServer, php: str
) -> None:
    needs(php)
    here = REPOSITORY / "tests/php"
    said = project.run(php, str(here / "load_all.php"), str(REPOSITORY / "clients"))
    assert said.strip() == str(len(list(REPOSITORY.glob("clients/*/src/**/*.php"))))
    called = project.run(php, str(here / "every_verb.php")).splitlines()
    assert {"/push", "/pop", "/finish"} < {json.loads(line)["path"] for line in called}
    worker = "(new Worker())->on('versions', fn (Job $job) => print(PHP_VERSION))"
    head = "<?php use DelayQueue\\Client\\{Job, Worker}; require 'vendor/autoload.php';"
    project.write("worker.php", f"{head} return {worker};")
    with Client(server.url) as queue:
        queue.push("versions")
    options = ("--max-jobs=1", "--quiet")
    said = project.run(php, "vendor/bin/delay-queue-worker", *options, "worker.php")
    assert said.startswith(php.removeprefix("php"))


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The repository of each package that a release would be pushed to."""
    folder = tmp_path_factory.mktemp("released")
    command = [sys.executable, str(REPOSITORY / "scripts/split.py"), str(folder), TAG]
    done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True)
    said = [line.partition(" ")[0] for line in done.stdout.splitlines()]
    assert said == [name.replace("/", "-") for name in PACKAGES]
    return {name: folder / f"{name.replace('/', '-')}.git" for name in PACKAGES}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_release_holds_what_users_need_and_composer_has_nothing_to_say_against_it(
    released: dict[str, Path], name: str, tmp_path: Path
) -> None:
    archive = ("git", "-C", str(released[name]), "archive", f"--output={tmp_path / 'made.tar'}")
    subprocess.run([*archive, TAG], check=True)
    with tarfile.open(tmp_path / "made.tar") as made:
        made.extractall(tmp_path / "made", filter="data")
    assert {path.name for path in (tmp_path / "made").iterdir()} == {
        path.name for path in PACKAGES[name].iterdir() if path.name not in KEPT_BACK
    }
    project = Project(tmp_path)
    said = project.composer("validate", "--strict", str(tmp_path / "made/composer.json"))
    assert said.endswith("is valid\n")


@pytest.fixture(scope="module")
def frameworks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, list[str]]]:
    """All that the packages require beyond each other, of the newest version that they allow, with nothing in it."""
    file = tmp_path_factory.mktemp("frameworks") / "nothing.php"
    file.write_text("<?php\n", encoding="utf-8")
    return {
        library: (NEWEST.get(library, "3.0"), [str(file)])
        for path in PACKAGES.values()
        for library in json.loads((path / "composer.json").read_text("utf-8"))["require"]
        if "/" in library and library not in PACKAGES
    }


def test_all_packages_can_be_required_by_name_from_the_tags_of_a_release(
    released: dict[str, Path], frameworks: dict[str, tuple[str, list[str]]], tmp_path: Path
) -> None:
    project = Project(tmp_path / "shop", libraries=frameworks, packages=released)
    # nothing is cloned then, not even from a folder
    del project.variables["COMPOSER_DISABLE_NETWORK"]
    project.composer("require", "--no-progress", *PACKAGES)
    chosen = json.loads((project.folder / "composer.json").read_text("utf-8"))["require"]
    assert set(chosen.values()) == {f"^{delayqueue.__version__}"}
    installed = json.loads(project.composer("show", "--format=json"))["installed"]
    ours = {each["name"]: each["version"] for each in installed if each["name"] in PACKAGES}
    assert ours == dict.fromkeys(PACKAGES, TAG)
    assert "--max-jobs" in project.run("php", "vendor/bin/delay-queue-worker", "--help")


def test_all_packages_can_be_required_from_a_clone_as_the_pages_say(
    frameworks: dict[str, tuple[str, list[str]]], tmp_path: Path
) -> None:
    (tmp_path / "delay-queue").symlink_to(REPOSITORY)
    project = Project(tmp_path / "shop", libraries=frameworks, packages={})
    project.composer("config", "repositories.delay-queue", "path", "../delay-queue/clients/*")
    project.composer("require", "--no-progress", *(f"{name}:@dev" for name in PACKAGES))
    installed = {path.name for path in (project.folder / "vendor/delay-queue").iterdir()}
    assert installed == {name.partition("/")[2] for name in PACKAGES}


def test_composer_copies_the_packages_where_the_page_says_so(tmp_path: Path) -> None:
    project = Project(tmp_path / "shop", packages={})
    project.variables["COMPOSER_MIRROR_PATH_REPOS"] = "1"
    clients = str(REPOSITORY / "clients/*")
    project.composer("config", "repositories.delay-queue", "path", clients)
    project.composer("require", "--no-progress", "delay-queue/client:@dev")
    installed = project.folder / "vendor/delay-queue/client"
    assert installed.is_dir()
    assert not installed.is_symlink()


def test_the_test_of_the_page_passes_without_a_server(project: Project) -> None:
    needs("phpunit")
    shutil.copy(REPOSITORY / "examples/php-package/OrdersTest.php", project.folder)
    said = project.run("phpunit", "--bootstrap", "vendor/autoload.php", "OrdersTest.php")
    assert "OK (2 tests" in said


def test_who_follows_the_readme_sees_what_it_shows(project: Project, server: QueueServer) -> None:
    Follower(project.folder, server).follow("clients/php/README.md")


@pytest.mark.parametrize(
    "name", [name for name, path in PACKAGES.items() if (path / "phpunit.xml.dist").exists()]
)
def test_the_units_of_a_package_pass(name: str, tmp_path: Path) -> None:
    needs("phpunit", "composer")
    package = tmp_path / "package"
    shutil.copytree(PACKAGES[name], package, ignore=shutil.ignore_patterns("vendor"))
    project = Project(tmp_path)
    project.composer("dump-autoload", "--dev", "--working-dir", str(package))
    said = project.run("phpunit", "--configuration", str(package))
    assert "OK (" in said


def test_psalm_finds_nothing_at_its_strictest_level(tmp_path: Path) -> None:
    needs("psalm", "composer")
    needs_debian("Psr/Log/LoggerInterface.php", "Psr/Http/Client/ClientInterface.php")
    package = tmp_path / "package"
    shutil.copytree(PACKAGES["delay-queue/client"], package)
    description = json.loads((package / "composer.json").read_text("utf-8"))
    description["autoload-dev"]["psr-4"]["Psr\\"] = str(DEBIAN / "Psr")
    (package / "composer.json").write_text(json.dumps(description), encoding="utf-8")
    project = Project(tmp_path)
    project.composer("dump-autoload", "--dev", "--working-dir", str(package))
    project.run("psalm", f"--root={package}", "--no-cache", "--no-progress", "--threads=1")
