"""python scripts/single_file.py WHEEL: the server with its store as one file, dist/delay-queue-VERSION-PLATFORM.pyz.

For those without pipx: it needs nothing but Python, one of PYTHONS. The file has the wheel and the versions of the
image (deploy/requirements.txt) for each of these. single_file_main.py, which runs first, unpacks those of its Python.
"""

import subprocess
import sys
import tempfile
import zipapp
from pathlib import Path
from shutil import copy
from sysconfig import get_platform
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")


def main(wheel: Path) -> None:
    """Raises CalledProcessError if a version has no wheel for one of the Pythons."""
    version = wheel.name.split("-")[1]
    made = wheel.with_name(f"delay-queue-{version}-{get_platform()}.pyz")
    with tempfile.TemporaryDirectory() as folder:
        wheels = Path(folder) / "wheels"
        for python in PYTHONS:
            download(python, wheels)
        copy(wheel, wheels)
        copy(ROOT / "scripts" / "single_file_main.py", Path(folder) / "__main__.py")
        zipapp.create_archive(folder, made, interpreter="/usr/bin/env python3")
    sys.stdout.write(f"{made.name}: {made.stat().st_size / 1e6:.0f} MB\n")


def download(python: str, wheels: Path) -> None:
    """The wheels of the lock file for one Python."""
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    lock = ["--require-hashes", f"--requirement={ROOT / 'deploy' / 'requirements.txt'}"]
    which = [f"--python-version={python}", f"--dest={wheels}"]
    pip = [sys.executable, "-m", "pip", "download"]
    subprocess.run([*pip, *options, *lock, *which], check=True)  # noqa: S603  # our own command


if __name__ == "__main__":
    main(Path(sys.argv[1]))
