"""`make release` sets the version everywhere, and commits nothing if a step fails."""

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.processes import REPOSITORY

SCRIPT: Final = REPOSITORY / "scripts" / "release.py"
WORKFLOWS: Final = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
READERS: Final = (("actionlint",), ("zizmor", "--offline", "--no-progress", "."))
PLACES: Final = ("delayqueue/__init__.py", "Dockerfile", "deploy/helm/delay-queue/Chart.yaml")
STEPS: Final = "all lint test-all package audit:\n\t@echo $@ >> steps.log\n\t@test $@ != $(FAILS)\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the files that have the version, and steps that only report that they ran."""
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n- A fix.\n")
    (tmp_path / "Makefile").write_text(STEPS)
    (tmp_path / ".gitignore").write_text("steps.log\n")
    git(tmp_path, "init", "--quiet")
    for setting in ("user.name=a", "user.email=a@b"):
        git(tmp_path, "config", *setting.split("="))
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message=first")
    return tmp_path


def git(folder: Path, *words: str) -> str:
    command = ["git", *words]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def release(folder: Path, version: str, fails: str = "none") -> subprocess.CompletedProcess[str]:
    command = ["env", f"FAILS={fails}", sys.executable, str(SCRIPT), version]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_it_sets_the_version_runs_every_step_commits_and_tags(checkout: Path) -> None:
    done = release(checkout, "7.8.8")
    assert done.returncode == 0, done.stderr
    assert "git push" in done.stdout
    assert (checkout / "steps.log").read_text().split() == ["lint", "test-all", "package", "audit"]
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "describe", "--tags").strip() == "v7.8.8"
    found = [(checkout / name).read_text().count("7.8.8") for name in PLACES]
    assert found == [1, 1, 2]
    changes = (checkout / "CHANGELOG.md").read_text()
    assert re.search(r"## Unreleased\n\n## 7\.8\.8 - \d{4}-\d\d-\d\d\n\n- A fix\.\n\Z", changes)
    again = release(checkout, "7.8.9")
    assert "nothing to release" in again.stderr


def test_a_step_that_fails_ends_it_before_anything_is_committed(checkout: Path) -> None:
    done = release(checkout, "7.8.9", fails="test-all")
    assert done.returncode == 1
    assert "make test-all failed" in done.stderr
    assert git(checkout, "tag") == ""
    assert git(checkout, "log", "--oneline").count("\n") == 1
    assert "not committed" in release(checkout, "7.8.9").stderr


@pytest.mark.parametrize("version", ["", "1.2", "v1.2.3", "1.2.3; rm", "1.2.3rc1"])
def test_what_is_no_version_is_refused(checkout: Path, version: str) -> None:
    assert "must be like 1.2.3" in release(checkout, version).stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_only_what_is_pinned_and_may_do_only_what_it_says(path: Path) -> None:
    text = path.read_text("utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    assert all(job["permissions"] for job in workflow["jobs"].values())
    for action in re.findall(r"uses: (?!\./)(.+)", text):
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
    for image in re.findall(r"container: (.+)", text):
        assert re.fullmatch(r"[\w:.-]+@sha256:[0-9a-f]{64}", image)
    for target in chain.from_iterable(map(str.split, re.findall(r"run: make (.+)", text))):
        assert re.search(rf"^{target}:", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_packages_for_php_are_pushed_on_top_of_the_release_before(tmp_path: Path) -> None:
    """The steps of the workflow, in a clone, with folders for the repositories at the other end."""
    workflow = yaml.safe_load(WORKFLOWS[0].with_name("release.yml").read_text("utf-8"))
    steps = [step["run"] for step in workflow["jobs"]["composer"]["steps"] if "run" in step]
    checkout, remote = tmp_path / "checkout", tmp_path / "remote"
    git(tmp_path, "clone", "--quiet", "--shared", str(REPOSITORY), str(checkout))
    for setting in ("user.name=a", "user.email=a@b"):
        git(checkout, "config", *setting.split("="))
    packages = sorted((checkout / "clients").glob("*/composer.json"))
    names = [json.loads(path.read_text("utf-8"))["name"].replace("/", "-") for path in packages]
    for name in names:
        git(tmp_path, "init", "--quiet", "--bare", f"{remote}/{name}.git")
    variables = {
        "GITHUB_SERVER_URL": "https://host.example",
        "GITHUB_REPOSITORY_OWNER": "owner",
        "TOKEN": "secret",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{remote}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://x-access-token:secret@host.example/owner/",
    }
    for tag in ("v7.8.8", "v7.8.9"):
        (checkout / "clients/php/README.md").write_text(tag)
        git(checkout, "commit", "--quiet", "--all", "--message=Change it\n\nFor a reason.")
        for run in steps:
            environment = {**os.environ, **variables, "GITHUB_REF_NAME": tag}
            command = ["bash", "-e", "-c", run]
            subprocess.run(command, cwd=checkout, env=environment, check=True)
        shutil.rmtree(checkout / "split")
    for name in names:
        changed = name == "delay-queue-client"
        log = git(remote / f"{name}.git", "log", "--format=%an, %B", "v7.8.8..v7.8.9").strip()
        assert log == ("a, Change it\n\nFor a reason." if changed else "")


def test_the_image_is_built_from_one_that_is_pinned() -> None:
    bases = re.findall(r"^FROM (\S+)", (REPOSITORY / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:[\w.-]+@sha256:[0-9a-f]{64}", bases[0])


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader[0])
def test_who_reads_workflows_finds_nothing_wrong(reader: tuple[str, ...]) -> None:
    if shutil.which(reader[0]) is None:
        pytest.skip(f"{reader[0]} is not installed")
    done = subprocess.run(reader, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
