"""A PHP project as a user has one: an empty folder, and packages that Composer installs into it without a network."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

import delayqueue
from tests.processes import REPOSITORY

CLIENTS: Final = REPOSITORY / "clients"
PACKAGES: Final[dict[str, Path]] = {
    json.loads(path.read_text("utf-8"))["name"]: path.parent
    for path in sorted(CLIENTS.glob("*/composer.json"))
}
DEBIAN: Final = Path("/usr/share/php")
COMMAND_S: Final = 60.0
# of frameworks that are older than the PHP that runs them
QUIET: Final = ("php", "-d", "error_reporting=E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED")


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def needs_debian(*autoloaders: str) -> None:
    """Skip the test if Debian's package of a library is missing."""
    for path in autoloaders:
        if not (DEBIAN / path).exists():
            pytest.skip(f"{DEBIAN / path} is not installed")


def debian_version(package: str) -> str:
    """The upstream version of an installed package of Debian."""
    command = ["dpkg-query", "--show", "--showformat", "${Version}", package]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.split(r"[+-]", version.rpartition(":")[2])[0]


def repository(name: str, path: Path) -> object:
    """What Composer is told of a package."""
    if path.suffix == ".git":
        return {"type": "vcs", "url": str(path)}
    # copied as a release would be, and with the version that a tag gives it
    options = {"symlink": False, "versions": {name: delayqueue.__version__}}
    return {"type": "path", "url": str(path), "options": options}


class Project:
    """`libraries`: what comes from Debian's packages, name → (version, files that load it).

    `autoload`: folders of its own classes, by their namespace. `packages`: which of ours can be required, from folders
    or from repositories of a release.
    """

    def __init__(
        self,
        folder: Path,
        *required: str,
        libraries: Mapping[str, tuple[str, Sequence[str]]] | None = None,
        autoload: Mapping[str, str] | None = None,
        packages: Mapping[str, Path] = PACKAGES,
    ) -> None:
        needs("composer", "php")
        self.folder = folder
        self.variables = {
            "COMPOSER_HOME": str(folder / ".composer"),
            "COMPOSER_ALLOW_SUPERUSER": "1",
            "COMPOSER_DISABLE_NETWORK": "1",
        }
        folder.mkdir(parents=True, exist_ok=True)
        repositories = {name: repository(name, path) for name, path in packages.items()}
        for name, (version, files) in (libraries or {}).items():
            repositories[name] = self._from_debian(name, version, files)
        settings = {
            "repositories": repositories | {"packagist.org": False},
            "config": {"allow-plugins": False},
            "autoload": {"psr-4": dict(autoload or {})} if autoload else {},
        }
        (folder / "composer.json").write_text(json.dumps(settings), encoding="utf-8")
        if required:
            self.composer("require", "--no-progress", *required)

    def composer(self, *arguments: str) -> str:
        """What Composer prints. It must succeed."""
        return self.run("composer", "--no-interaction", "--no-ansi", *arguments)

    def run(self, *command: str, **environment: str) -> str:
        """What a command prints on both outputs. It must succeed."""
        done = self.ended(*command, **environment)
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def ended(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """How a command ends, with what it prints on both outputs."""
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=COMMAND_S,
            check=False,
        )

    def environment(self, **variables: str) -> dict[str, str]:
        """Of its commands."""
        return {**os.environ, **self.variables, **variables}

    def write(self, name: str, text: str) -> str:
        """Write a file. Returns its name."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return name

    def php(self, code: str, **environment: str) -> str:
        """What lines of PHP print, with the packages loaded and the classes of the client imported."""
        head = (
            "<?php require 'vendor/autoload.php'; use DelayQueue\\Client\\{Client, Job, NewJob};\n"
        )
        return self.run("php", self.write("lines.php", head + code), **environment)

    def _from_debian(self, name: str, version: str, files: Sequence[str]) -> object:
        """A repository with a package that loads the files of Debian's."""
        folder = self.folder / ".debian" / name
        folder.mkdir(parents=True)
        loads = "".join(f"require_once '{DEBIAN / file}';\n" for file in files)
        (folder / "load.php").write_text(f"<?php\n{loads}", encoding="utf-8")
        package = {"name": name, "version": version, "autoload": {"files": ["load.php"]}}
        (folder / "composer.json").write_text(json.dumps(package), encoding="utf-8")
        return {"type": "path", "url": str(folder)}
