"""The Dockerfile, followed without an engine."""

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Final

from tests.processes import REPOSITORY, Processes

from .installed import Installed, try_server
from .tools import committed, run, say

# the root file system is read-only, but for the volume; the user is that of the image
CONFINED: Final = """\
mount --make-rprivate / && mount --bind "$DATA" "$DATA" && mount -o remount,bind,ro / &&
exec setpriv --reuid "$OWNER" --regid "$OWNER" --clear-groups --no-new-privs --bounding-set -all "$@"
"""


class Image:
    """The Dockerfile, followed in a folder that stands for the root of the file system."""

    def __init__(self, root: Path, python: str) -> None:
        """`root` is the folder, `python` what the base image would bring."""
        self._root = root
        self._work = root
        self._python = python
        self.user = ""
        self.variables: dict[str, str] = {}
        self.program: list[str] = []
        self.health: list[str] = []

    def follow(self, text: str) -> None:
        """Do what each instruction says, one after the other."""
        for line in re.sub(r"\\\n\s*", " ", text).splitlines():
            word, _, rest = line.partition(" ")
            step = getattr(self, f"_{word.lower()}", None)
            if step is not None:
                step(rest)

    def _workdir(self, path: str) -> None:
        self._work = Path(self._inside(path))
        self._work.mkdir(parents=True, exist_ok=True)

    def _copy(self, words: str) -> None:
        *names, _ = words.split()
        if names[0].startswith("--from"):  # the stages share the folder
            return
        for name in names:
            is_folder = (REPOSITORY / name).is_dir()  # one that is copied to the same name
            for one in committed():
                if one == name or one.startswith(f"{name}/"):
                    place = self._work / (one if is_folder else Path(one).name)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(REPOSITORY / one, place)

    def _user(self, words: str) -> None:
        self.user = words.partition(":")[0]

    def _run(self, words: str) -> None:
        began = time.monotonic()
        command = self._command(words)
        run(*command, cwd=self._work)
        say(f"  {time.monotonic() - began:5.1f} s  {words[:100]}")

    def _env(self, words: str) -> None:
        given = dict(word.split("=", 1) for word in words.split())
        for name, value in given.items():
            path = self._inside(value.strip('"'))
            self.variables[name] = path.replace("${PATH}", os.environ["PATH"])

    def _healthcheck(self, words: str) -> None:
        self.health = self._command(words.partition(" CMD ")[2])

    def _entrypoint(self, words: str) -> None:
        self.program = self._command(words)

    def _command(self, words: str) -> list[str]:
        command = [self._inside(word) for word in json.loads(words)]
        return [self._python if command[0] == "python" else command[0], *command[1:]]

    def _inside(self, word: str) -> str:
        return f"{self._root}{word}" if re.match(r"/(data|opt|src)\b", word) else word


def try_image(processes: Processes, python: str) -> None:
    """Follow the Dockerfile and use the result: as its user, with a read-only root."""
    root = processes.home("image")
    image = Image(root, python)
    say("image: the steps of the Dockerfile")
    image.follow((REPOSITORY / "Dockerfile").read_text("utf-8"))
    for folder in (root, root.parent):  # temporary folders are closed to other users
        folder.chmod(0o755)
    size = run("du", "--summarize", "--human-readable", str(root / "opt"), cwd=root).split()[0]
    say(f"  {size} in /opt/delay-queue")
    given = {"DATA": str(root / "data"), "OWNER": image.user, "DELAYQUEUE_WORKERS": "2"}
    server = Installed(root / "data", image.program, image.variables | given)
    server.wrap("unshare", "--mount", "sh", "-c", CONFINED, "sh")
    health = ["env", f"DELAYQUEUE_BIND_ADDRESS={server.address}", *image.health]
    try_server(processes.adopt(server), root, health)
