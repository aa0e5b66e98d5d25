"""make release VERSION=1.2.3: a release, up to the push. What to do before and after is in docs/releasing.md.

Sets the version and the day, runs lint, tests and package, looks for known vulnerabilities, commits and tags. If a step
fails, nothing is committed, and `git checkout .` undoes what was set.
"""

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path.cwd()
VERSION: Final = re.compile(r"\d+\.\d+\.\d+")  # Helm and PyPI write others in different ways
PLACES: Final = {
    "delayqueue/__init__.py": r'(?<=^__version__ = ")[^"]+',
    "Dockerfile": r'(?<=image\.version=")[^"]+',
    "deploy/helm/delay-queue/Chart.yaml": r"(?<=^version: )\S+|(?<=^appVersion: )\S+",
}
UNRELEASED: Final = "## Unreleased\n"
STEPS: Final = ("lint", "test-all", "package", "audit")


def main(version: str) -> None:
    """Raises SystemExit that says what is in the way."""
    check(version)
    for name, pattern in PLACES.items():
        edit(name, pattern, version)
    today = datetime.now(UTC).date()
    heading = f"## {version} - {today}\n"
    edit("CHANGELOG.md", f"^{UNRELEASED}", f"{UNRELEASED}\n{heading}")
    for step in STEPS:
        run("make", step)
    run("git", "commit", "--quiet", "--all", "--message", f"Release {version}")
    run("git", "tag", "--annotate", "--message", f"Version {version}", f"v{version}")
    sys.stdout.write(
        f"v{version} is committed and tagged. What is left, as docs/releasing.md says:\n"
        f"  git push --atomic origin HEAD v{version}\n"
    )


def check(version: str) -> None:
    if not VERSION.fullmatch(version):
        raise SystemExit(f"VERSION={version}: must be like 1.2.3")
    if said("git", "status", "--porcelain"):
        raise SystemExit("there are changes that are not committed: commit or stash them")
    if said("git", "tag", "--list", f"v{version}"):
        raise SystemExit(f"v{version} is tagged already: choose the next version")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8").partition(UNRELEASED)[2]
    if not changes.partition("\n## ")[0].strip():
        raise SystemExit("CHANGELOG.md has nothing under Unreleased: there is nothing to release")


def edit(name: str, pattern: str, text: str) -> None:
    path = ROOT / name
    edited, count = re.subn(pattern, text, path.read_text("utf-8"), flags=re.MULTILINE)
    if not count:
        raise SystemExit(f"{name}: nothing is like {pattern}")
    path.write_text(edited, "utf-8")


def said(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603  # our own commands
    return done.stdout


def run(*command: str) -> None:
    sys.stdout.write(f"release: {' '.join(command)}\n")
    sys.stdout.flush()
    done = subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603  # our own commands
    if done.returncode:
        raise SystemExit(
            f"{' '.join(command)} failed: nothing was released; git checkout . undoes the rest"
        )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
