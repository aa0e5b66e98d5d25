"""The packages in clients/, as Composer sees them and as a release would hold them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.docs.follow import Follower
from tests.processes import REPOSITORY

from .project import DEBIAN, PACKAGES, Project, needs, needs_debian

if TYPE_CHECKING:
    from pathlib import Path

    from tests.processes import QueueServer

# the versions of frameworks that the packages allow; of others 3.0
NEWEST = {
    "yiisoft/yii2-queue": "2.3.8",
    **dict.fromkeys(("illuminate/contracts", "illuminate/queue", "illuminate/support"), "13.0.0"),
    **dict.fromkeys(
        ("symfony/dependency-injection", "symfony/http-kernel", "symfony/messenger"), "7.4.0"
    ),
}
# what is not for users: /tests export-ignore and so on, in .gitattributes
KEPT_BACK = {".gitattributes", "phpunit.xml.dist", "psalm.xml", "tests", "vendor", "composer.lock"}

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
    "a function": (
        r"\b(json_validate|array_(find|any|all)|str_(in|de)crement|mb_(trim|str_pad))\(",
        "json_validate($a)",
    ),
}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_no_php_newer_than_8_1(name: str) -> None:
    needs("php")
    files = list(PACKAGES[name].glob("src/**/*.php"))
    assert files
    for path in files:
        # without comments, and on few lines
        text = subprocess.run(["php", "-w", path], capture_output=True, text=True, check=True)
        found = [what for what, (newer, _) in NEWER.items() if re.search(newer, text.stdout, re.S)]
        assert found == [], path


@pytest.mark.parametrize("what", NEWER)
def test_php_newer_than_8_1_is_found(what: str) -> None:
    pattern, example = NEWER[what]
    assert re.search(pattern, example, re.S)


@pytest.mark.parametrize("name", PACKAGES)
def test_composer_has_nothing_to_say_against_a_package(name: str, tmp_path: Path) -> None:
    said = Project(tmp_path).composer("validate", "--strict", str(PACKAGES[name] / "composer.json"))
    assert said.endswith("is valid\n")
    assert json.loads((PACKAGES[name] / "composer.json").read_text("utf-8"))["name"] == name


def test_a_release_holds_what_users_need_and_nothing_else(project: Project) -> None:
    source, installed = PACKAGES["delay-queue/client"], project.folder / "vendor/delay-queue/client"
    assert {path.name for path in installed.iterdir()} == {
        path.name for path in source.iterdir() if path.name not in KEPT_BACK
    }
    assert (project.folder / "vendor/bin/delay-queue-worker").exists()


def test_all_packages_can_be_required_from_a_clone_as_the_pages_say(tmp_path: Path) -> None:
    (tmp_path / "delay-queue").symlink_to(REPOSITORY)
    framework = tmp_path / "nothing.php"
    framework.write_text("<?php\n", encoding="utf-8")
    wanted = [
        library
        for path in PACKAGES.values()
        for library in json.loads((path / "composer.json").read_text("utf-8"))["require"]
        if "/" in library and library not in PACKAGES
    ]
    project = Project(
        tmp_path / "shop",
        libraries={name: (NEWEST.get(name, "3.0"), [str(framework)]) for name in wanted},
        packages={},
    )
    project.composer("config", "repositories.delay-queue", "path", "../delay-queue/clients/*")
    project.composer("require", "--no-progress", *(f"{name}:@dev" for name in PACKAGES))
    installed = {path.name for path in (project.folder / "vendor/delay-queue").iterdir()}
    assert installed == {name.partition("/")[2] for name in PACKAGES}


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
