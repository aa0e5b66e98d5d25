"""The tutorial and the how-tos, followed word for word."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from scripts.generate import quoted
from tests.processes import REPOSITORY, QueueServer

from .follow import Follower
from .markdown import at, blocks, read, run
from .test_orders import JACKSON, needs

DOCS: Final = REPOSITORY / "docs"
CHINESE: Final = ".zh-CN.md"
PAGES: Final = [
    f"docs/{path.relative_to(DOCS)}"
    for path in sorted([*DOCS.glob("howto/*.md"), *DOCS.glob("*.md")])
    if path.parent.name == "howto"
    or path.stem in {"index", "migration", "recipes", "tutorial", "upgrading"}
    if not path.name.endswith(CHINESE)
]
PHEANSTALK: Final = Path("/usr/share/php/Pheanstalk/autoload.php")
# if a page needs files of others, such as composer's vendor/autoload.php
FOLDERS: Final = {".jar": "lib", ".php": "vendor"}
# what a page needs beyond this repository: programs, and files
FOLLOWED: Final[dict[str, tuple[str, list[Path]]]] = {
    "docs/index.md": ("curl", []),
    "docs/tutorial.md": ("php", []),
    "docs/howto/php.md": ("composer", []),
    "docs/howto/languages.md": ("node go java", JACKSON),
    "docs/howto/beanstalkd.md": ("php", [PHEANSTALK]),
    "docs/howto/groups.md": ("curl", []),
}
# what runs the programs of the front page
FRONT: Final = {"python": [sys.executable], "php": ["php"], "js": ["node", "--input-type=module"]}
# their commands need an engine, a cluster or root: the tests read them, and try what they name
READ: Final = (
    *(f"docs/howto/{name}.md" for name in ("docker", "kubernetes", "outbox", "systemd")),
    "docs/upgrading.md",
)


@pytest.mark.parametrize("page", PAGES)
def test_a_file_on_a_page_is_one_of_the_examples(page: str) -> None:
    for block in blocks(read(page)):
        assert not block.title or quoted(REPOSITORY / page, block.title)


@pytest.mark.parametrize("page", FOLLOWED)
def test_who_follows_a_page_sees_what_it_shows(
    page: str, server: QueueServer, beside_the_clone: Path
) -> None:
    tools, files = FOLLOWED[page]
    for tool in tools.split():
        needs(tool, files)
    for file in files:
        folder = beside_the_clone / FOLDERS[file.suffix]
        folder.mkdir(exist_ok=True)
        (folder / file.name).symlink_to(file)
    Follower(beside_the_clone, server).follow(page)


@pytest.fixture
def beside_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder beside a clone of this repository; Composer does without a network there."""
    (tmp_path / "delay-queue").symlink_to(REPOSITORY)
    composer = tmp_path / "composer"
    composer.mkdir()
    (composer / "config.json").write_text('{"repositories": {"packagist.org": false}}', "utf-8")
    monkeypatch.setenv("COMPOSER_HOME", str(composer))
    monkeypatch.setenv("COMPOSER_ALLOW_SUPERUSER", "1")
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("language", FRONT)
def test_each_program_of_the_front_page_closes_the_order(
    language: str, server: QueueServer
) -> None:
    needs(FRONT[language][0], [])
    (program,) = blocks(read("docs/index.md"), language)
    assert run(FRONT[language], at(server, program.text)) == "closing order 1001\n"


@pytest.mark.parametrize("page", READ)
def test_the_commands_of_a_page_are_sound_and_name_files_that_there_are(page: str) -> None:
    flush = re.sub(r"^ +", "", read(page), flags=re.MULTILINE)  # also those in lists
    commands = blocks(flush, "sh")
    assert commands
    for block in commands:
        subprocess.run(["bash", "-n"], input=block.text, text=True, check=True, timeout=10)
        words = [
            word
            for line in block.text.replace("\\\n", " ").splitlines()
            for word in shlex.split(line, True)
        ]
        for word in words:
            if re.match(r"(deploy|examples|docs|scripts)/", word):
                assert (REPOSITORY / word).exists(), word


def units() -> dict[str, str]:
    """The shipped units of systemd, and that of the page, by their names."""
    shipped = (REPOSITORY / "deploy" / "systemd").glob("*.service")
    found = {unit.name: unit.read_text("utf-8") for unit in shipped}
    found |= {each.title: each.text for each in blocks(read("docs/howto/systemd.md")) if each.title}
    assert len(found) == 3
    return found


@pytest.mark.parametrize("name", units())
def test_a_unit_that_ends_early_and_often_is_started_again_all_the_same(name: str) -> None:
    # systemd's own limit is five starts in ten seconds; a worker's thousand jobs can take less than one
    assert "\nRestart=always\n" in units()[name]
    assert "\nStartLimitIntervalSec=0\n" in units()[name]


def test_supervisord_does_not_give_up_workers_whose_database_is_away() -> None:
    [program] = [each.text for each in blocks(read("docs/howto/php.md"), "ini")]
    # by default it tries four times a program that ends within a second
    assert {"autorestart=true", "startsecs=0"} <= set(program.splitlines())


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    needs("systemd-analyze", [])
    for name, unit in units().items():
        # it checks whether the programs are there
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit, flags=re.M)
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [str(tmp_path / name) for name in units()]
    assert run(["systemd-analyze", "verify", "--man=no", *files]) == ""


def test_every_page_of_this_kind_is_followed_or_read() -> None:
    elsewhere = {
        "docs/howto/autoscaling.md",  # test_autoscaling_page.py
        "docs/howto/backup.md",  # test_backup_page.py
        "docs/howto/calls.md",  # test_calls_page.py
        "docs/howto/moving.md",  # test_moving_page.py
        "docs/howto/proxy-login.md",  # test_proxy_login_page.py
        "docs/howto/laravel.md",  # test_orders.py, tests/php
        "docs/howto/symfony.md",  # test_beanstalkd_pages.py, tests/php
        *(
            f"docs/howto/{name}.md" for name in ("django", "fastapi", "sentry")
        ),  # test_framework_pages.py
        "docs/howto/task-queues.md",  # test_task_queues_page.py
        "docs/howto/hyperf.md",  # tests/php
        "docs/howto/thinkphp.md",  # tests/php
        "docs/howto/yii.md",
        "docs/migration.md",  # test_migration_page.py
        "docs/recipes.md",  # test_recipes_page.py
    }
    without_commands = {"docs/howto/sizing.md", "docs/howto/changed-tasks.md"}
    assert {*FOLLOWED, *READ, *elsewhere, *without_commands} == set(PAGES)
    for page in without_commands:
        assert not blocks(read(page), "sh", "console")
