"""The packages for PHP as repositories of their own, which is what Composer's index reads: split.py FOLDER TAG.

FOLDER/NAME.git, such as delay-queue-client.git, gets `main`, the commits that changed the package, and the tag. They
come out the same each time, as those of `git subtree split`, so each release can be pushed on top of the one before.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path.cwd()
# who and when of a commit, which the split one keeps, and git's names for them
PEOPLE: Final = {
    f"GIT_{person}_{what}": f"%{letter}{format_}"
    for person, letter in (("AUTHOR", "a"), ("COMMITTER", "c"))
    for what, format_ in (("NAME", "n"), ("EMAIL", "e"), ("DATE", "d"))
}
FORMAT: Final = "%x00".join(["%H", *PEOPLE.values(), "%B"])


def main(folder: Path, tag: str) -> None:
    for path in sorted(ROOT.glob("clients/*/composer.json")):
        name = json.loads(path.read_text("utf-8"))["name"].replace("/", "-")
        commit = split(path.parent.relative_to(ROOT).as_posix())
        repository = folder / f"{name}.git"
        git("init", "--quiet", "--bare", "--initial-branch=main", str(repository))
        git(
            "push",
            "--quiet",
            str(repository),
            f"{commit}:refs/heads/main",
            f"{commit}:refs/tags/{tag}",
        )
        sys.stdout.write(f"{name} {commit}\n")


def split(prefix: str) -> str:
    """The last of the commits that have only what is below `prefix`."""
    last = ""
    log = ("log", "-z", "--reverse", "--first-parent", "--date=raw", f"--format={FORMAT}%x00")
    fields = git(*log, "--", prefix).split("\0")
    for start in range(0, len(fields) - 1, len(PEOPLE) + 3):
        commit, *people, message = fields[start : start + len(PEOPLE) + 2]
        tree = git("rev-parse", f"{commit}:{prefix}").strip()
        parent = ("-p", last) if last else ()
        made = dict(zip(PEOPLE, people, strict=True))
        last = git("commit-tree", tree, *parent, stdin=message, **made).strip()
    return last


def git(*words: str, stdin: str = "", **variables: str) -> str:
    done = subprocess.run(  # noqa: S603  # our own commands
        ["git", *words],  # noqa: S607
        cwd=ROOT,
        input=stdin,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("python3 scripts/split.py FOLDER TAG")
    main(Path(sys.argv[1]).absolute(), sys.argv[2])
